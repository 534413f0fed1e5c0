//! What is to be set on an endpoint, read from a request's JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};
use subak_base::Weight;
use subak_health::Admin;

use crate::answer::Refusal;
use crate::request::{bad, object};

const KEYS: [&str; 3] = ["state", "weight", "deadline"];
const STATES: [(&str, Admin); 3] =
    [("ready", Admin::Ready), ("drain", Admin::Drain), ("maintenance", Admin::Maintenance)];
const EXAMPLE: &str =
    "for example {\"state\": \"drain\"} or {\"weight\": 5}; null takes a value back";

/// What is to be set on an endpoint. `None`: leave it; `Some(None)`: take back what the API has set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The state wanted.
    pub state: Option<Option<Admin>>,
    /// The weight.
    pub weight: Option<Option<Weight>>,
    /// After which time a drain becomes maintenance.
    pub deadline: Option<Duration>,
}

impl Change {
    /// Reads the body of a PUT (`replaces`: what is not named is taken back) or a PATCH.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(body: &[u8], replaces: bool) -> Result<Change, Refusal> {
        let object = object(body, &KEYS, ("on an endpoint", EXAMPLE))?;
        if object.is_empty() && !replaces {
            return Err(bad("the body names nothing to change", EXAMPLE));
        }
        let change = Change {
            state: read(&object, "state", state)?.or(replaces.then_some(None)),
            weight: read(&object, "weight", weight)?.or(replaces.then_some(None)),
            deadline: read(&object, "deadline", deadline)?.flatten(),
        };
        if change.deadline.is_some() && change.state != Some(Some(Admin::Drain)) {
            let hint =
                "say it together with the drain: {\"state\": \"drain\", \"deadline\": \"10m\"}";
            return Err(bad("a deadline is one of a drain", hint));
        }
        Ok(change)
    }
}

/// For the log: `state drain, weight taken back`.
impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        if let Some(state) = self.state {
            match state {
                Some(state) => write!(out, "state {state}")?,
                None => out.write_str("state taken back")?,
            }
            before = ", ";
        }
        if let Some(deadline) = self.deadline {
            write!(out, "{before}deadline {deadline:?}")?;
        }
        match self.weight {
            Some(Some(weight)) => write!(out, "{before}weight {}", weight.0),
            Some(None) => write!(out, "{before}weight taken back"),
            None => Ok(()),
        }
    }
}

fn read<T>(
    object: &Map<String, Value>,
    key: &str,
    parse: impl Fn(&Value) -> Result<T, Refusal>,
) -> Result<Option<Option<T>>, Refusal> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(value) => parse(value).map(|value| Some(Some(value))),
    }
}

fn state(value: &Value) -> Result<Admin, Refusal> {
    let word = value.as_str().unwrap_or_default();
    if let Some((_, state)) = STATES.iter().find(|(name, _)| *name == word) {
        return Ok(*state);
    }
    let hint = match subak_config::nearest(word, STATES.map(|(name, _)| name)) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "one of \"ready\", \"drain\", \"maintenance\"; null takes it back".to_owned(),
    };
    Err(bad(format!("state cannot be {value}"), hint))
}

fn deadline(value: &Value) -> Result<Duration, Refusal> {
    let read = value.as_str().ok_or("it is no text".to_owned()).and_then(subak_config::duration);
    read.map_err(|error| {
        let hint = format!("a time such as \"10m\" or \"1h30m\" ({error})");
        bad(format!("deadline cannot be {value}"), hint)
    })
}

fn weight(value: &Value) -> Result<Weight, Refusal> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
    number.map(Weight).ok_or_else(|| {
        let hint = "a whole number from 0 (no new work) to 65535; null takes it back";
        bad(format!("weight cannot be {value}"), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use proptest::prelude::*;

    fn patch(body: &str) -> Result<Change, Refusal> {
        Change::parse(body.as_bytes(), false)
    }

    #[test]
    fn a_patch_changes_what_it_names_and_a_put_takes_back_the_rest() {
        let drain = Some(Some(Admin::Drain));
        assert_eq!(
            patch(r#"{"state":"drain"}"#),
            Ok(Change { state: drain, weight: None, deadline: None })
        );
        let change = Change { state: Some(None), weight: Some(Some(Weight(0))), deadline: None };
        assert_eq!(patch(r#"{"state":null,"weight":0}"#), Ok(change));
        let put = |body: &str| Change::parse(body.as_bytes(), true);
        assert_eq!(
            put(r#"{"state":"drain"}"#),
            Ok(Change { state: drain, weight: Some(None), deadline: None })
        );
        assert_eq!(put("{}"), Ok(Change { state: Some(None), weight: Some(None), deadline: None }));
    }

    proptest! {
        #[test]
        fn no_body_is_too_odd_to_be_answered(body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(refusal) = Change::parse(&body, true) {
                prop_assert_eq!(refusal.status, StatusCode::BAD_REQUEST);
            }
        }
    }

    #[test]
    fn the_log_says_what_was_set() {
        for (body, text) in [
            (r#"{"state":"drain"}"#, "state drain"),
            (r#"{"weight":5}"#, "weight 5"),
            (r#"{"state":null,"weight":0}"#, "state taken back, weight 0"),
            (r#"{"state":"ready","weight":null}"#, "state ready, weight taken back"),
        ] {
            assert_eq!(patch(body).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_a_way_out() {
        for (body, error, hint) in [
            ("", "the body is not JSON", "for example"),
            ("{\"state\":", "the body is not JSON", "for example"),
            ("[]", "not a JSON object", "for example"),
            (r#"{"weight":1,"weight":2}"#, "\"weight\" twice", "only once"),
            (r#"{"state":null,"weight":1,"state":"drain"}"#, "\"state\" twice", "only once"),
            (r#"{"state":"drain","st\u0061te":"ready"}"#, "\"state\" twice", "only once"),
            ("{}", "names nothing", "for example"),
            (r#"{"wieght":1}"#, "\"wieght\" cannot be set", "did you mean \"weight\"?"),
            (r#"{"colour":1}"#, "\"colour\" cannot be set", "state and weight and deadline"),
            (r#"{"state":"drian"}"#, "state cannot be \"drian\"", "did you mean \"drain\"?"),
            (r#"{"state":"off"}"#, "state cannot be \"off\"", "one of \"ready\""),
            (r#"{"state":7}"#, "state cannot be 7", "one of \"ready\""),
            (r#"{"weight":65536}"#, "weight cannot be 65536", "0 (no new work) to 65535"),
            (r#"{"weight":-1}"#, "weight cannot be -1", "0 (no new work) to 65535"),
            (r#"{"weight":1.5}"#, "weight cannot be 1.5", "0 (no new work) to 65535"),
            (r#"{"deadline":"10m"}"#, "a deadline is one of a drain", "together"),
            (r#"{"state":"ready","deadline":"10m"}"#, "of a drain", "together"),
            (r#"{"state":"drain","deadline":"soon"}"#, "deadline cannot be", "such as"),
            (r#"{"state":"drain","deadline":5}"#, "deadline cannot be 5", "such as"),
            (r#"{"weight":"5"}"#, "weight cannot be \"5\"", "0 (no new work) to 65535"),
        ] {
            let refusal = patch(body).expect_err(body);
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST);
            assert!(refusal.error.contains(error), "{body}: {}", refusal.error);
            assert!(refusal.hint.contains(hint), "{body}: {}", refusal.hint);
        }
    }
}
