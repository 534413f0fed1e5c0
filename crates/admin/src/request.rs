//! What stands in requests: bodies and queries, read strictly.

use std::fmt;
use std::num::NonZeroUsize;

use http::{StatusCode, Uri};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

use crate::answer::Refusal;
use crate::status::Detail;

/// Picks that a pool can keep; a file that says more would be refused.
const MOST_PICKS: u64 = 100_000;
const ENDPOINT: &str = "for example {\"endpoint\": \"10.0.0.5:8080 weight=2\"}";
const PICKS: &str = "for example {\"pick_log\": 1000}; 0 is none, null is what the file says";
const ROLLBACK: &str = "{} goes back by one step, {\"to\": 3} to generation 3";

/// The object that a body is, with no other keys than these, each at most once.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn object(
    body: &[u8],
    keys: &[&str],
    (what, example): (&str, &str),
) -> Result<Map<String, Value>, Refusal> {
    let Pairs(pairs) = serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => bad("the body is not a JSON object", example),
        _ => bad(format!("the body is not JSON: {error}"), example),
    })?;
    let mut object = Map::new();
    for (key, value) in pairs {
        if object.contains_key(&key) {
            return Err(bad(format!("the body names {key:?} twice"), "name it only once"));
        }
        object.insert(key, value);
    }
    if let Some(unknown) = object.keys().find(|key| !keys.contains(&key.as_str())) {
        let hint = match subak_config::nearest(unknown, keys.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("what can be set is {}, {example}", keys.join(" and ")),
        };
        return Err(bad(format!("{unknown:?} cannot be set {what}"), hint));
    }
    Ok(object)
}

/// `{"endpoint": "10.0.0.5:8080 weight=2"}`
pub(crate) fn endpoint(body: &[u8]) -> Result<String, Refusal> {
    let object = object(body, &["endpoint"], ("here", ENDPOINT))?;
    let text = object.get("endpoint").and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| bad("the body names no endpoint", ENDPOINT))
}

/// `{"pick_log": 1000}`: so many, none, or what the files say.
pub(crate) fn picks(body: &[u8]) -> Result<Option<Option<NonZeroUsize>>, Refusal> {
    let object = object(body, &["pick_log"], ("on a pool", PICKS))?;
    match object.get("pick_log") {
        None => Err(bad("the body names nothing to change", PICKS)),
        Some(Value::Null) => Ok(None),
        Some(value) => {
            let picks = value.as_u64().filter(|picks| *picks <= MOST_PICKS);
            let picks = picks.and_then(|picks| usize::try_from(picks).ok());
            let wrong = || bad(format!("pick_log cannot be {value}"), PICKS);
            Ok(Some(NonZeroUsize::new(picks.ok_or_else(wrong)?)))
        }
    }
}

/// `{}`, `{"to": 3}` or nothing at all.
pub(crate) fn rollback(body: &[u8]) -> Result<Option<u64>, Refusal> {
    if body.is_empty() {
        return Ok(None);
    }
    let object = object(body, &["to"], ("here", ROLLBACK))?;
    match object.get("to") {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(generation) => Ok(Some(generation)),
            None => Err(bad(format!("to cannot be {value}"), ROLLBACK)),
        },
    }
}

/// A request that says all by its path.
pub(crate) fn nothing(body: &[u8]) -> Result<(), Refusal> {
    if body.is_empty() {
        return Ok(());
    }
    object(body, &[], ("here", "send no body, or {}")).map(|_| ())
}

/// `?after=N`; 0 where nothing is said.
pub(crate) fn after(target: &Uri) -> Result<u64, Refusal> {
    let mut after = 0;
    for pair in target.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let number = pair.strip_prefix("after=").and_then(|number| number.parse().ok());
        let hint = "for example ?after=120: what has happened after the event of that number";
        after = number.ok_or_else(|| bad(format!("{pair} cannot be read"), hint))?;
    }
    Ok(after)
}

/// `?endpoints=false`: pools have counts in place of their endpoints.
pub(crate) fn detail(target: &Uri) -> Result<Detail, Refusal> {
    let mut detail = Detail::Whole;
    for pair in target.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        detail = match pair {
            "endpoints=false" => Detail::Short,
            "endpoints=true" => Detail::Whole,
            _ => {
                let hint = "for example ?endpoints=false: pools without their endpoints";
                return Err(bad(format!("{pair} cannot be read"), hint));
            }
        };
    }
    Ok(detail)
}

pub(crate) fn bad(error: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, error, hint)
}

/// A JSON object as it was written: of two equal keys no reader should have to guess which one holds.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_queries_are_read_strictly() {
        assert_eq!(endpoint(br#"{"endpoint":"10.0.0.5:80"}"#), Ok("10.0.0.5:80".to_owned()));
        assert_eq!(picks(br#"{"pick_log":10}"#), Ok(Some(NonZeroUsize::new(10))));
        assert_eq!(picks(br#"{"pick_log":0}"#), Ok(Some(None)));
        assert_eq!(picks(br#"{"pick_log":null}"#), Ok(None));
        assert_eq!((rollback(b""), rollback(b"{}")), (Ok(None), Ok(None)));
        assert_eq!(rollback(br#"{"to":3}"#), Ok(Some(3)));
        assert_eq!((nothing(b""), nothing(b"{}")), (Ok(()), Ok(())));
        let query = |query: &str| after(&format!("/v1/events{query}").parse().expect("a target"));
        assert_eq!((query(""), query("?"), query("?after=7")), (Ok(0), Ok(0), Ok(7)));
        let refused = [
            endpoint(b"{}").err(),
            endpoint(br#"{"endpoint":5}"#).err(),
            endpoint(br#"{"endpoint":"a","endpoint":"b"}"#).err(),
            picks(b"{}").err(),
            picks(br#"{"pick_log":-1}"#).err(),
            picks(br#"{"pick_log":100001}"#).err(),
            rollback(br#"{"to":"3"}"#).err(),
            rollback(br#"{"to":null}"#).err(),
            rollback(br#"{"too":3}"#).err(),
            nothing(b"[]").err(),
            nothing(br#"{"a":1}"#).err(),
            detail(&"/v1/status?endpoints=no".parse().expect("a target")).err(),
            query("?after=").err(),
            query("?after=-1").err(),
            query("?before=1").err(),
        ];
        for (index, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.map(|refused| refused.status.as_u16()), Some(400), "{index}");
        }
    }
}
