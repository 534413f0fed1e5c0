//! What is asked of `/v1/explain` and `/v1/picks`.

use std::net::IpAddr;

use http::StatusCode;
use subak_explain::{BadQuestion, PICKS_MAX, Question, Search};

use crate::answer::Refusal;
use crate::resource::decode;

/// Bytes of a question: a URL and the headers of a request.
pub(crate) const BODY_BYTES: usize = 128 * 1024;

/// Picks that are told of where nothing is said.
const PICKS: usize = 20;

/// The request that is asked about.
///
/// # Errors
/// 400 for what is no question.
pub(crate) fn question(body: &[u8]) -> Result<Question, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        let error = format!("the body is no question: {error}");
        let hint = "send {\"url\": \"http://HOST/PATH\"}, and as you like method, client, headers \
                    ([[\"name\", \"value\"]]) and listener";
        Refusal::new(StatusCode::BAD_REQUEST, error, hint)
    })
}

/// A question that cannot be answered.
pub(crate) fn refusal(bad: BadQuestion) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, bad.error, bad.hint)
}

/// The picks that are wanted: `pool=app&n=20&id=00c0ffee00c0ffee&client=192.0.2.7`.
///
/// # Errors
/// 400 for a parameter that cannot be read.
pub(crate) fn search(query: &str) -> Result<Search, Refusal> {
    let mut search = Search { count: PICKS, ..Search::default() };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        let wrong = |hint: &str| {
            let error = format!("the parameter {name}={value} cannot be read");
            Refusal::new(StatusCode::BAD_REQUEST, error, hint)
        };
        match name {
            "pool" => search.pool = Some(value),
            "n" => {
                let count = value.parse().ok().filter(|count| (1..=PICKS_MAX).contains(count));
                search.count = count.ok_or_else(|| wrong("n is 1 to 1000"))?;
            }
            "id" => {
                let id = value.parse();
                search.id = Some(id.map_err(|_| wrong("an id has 16 hexadecimal digits"))?);
            }
            "client" => {
                let ip: Option<IpAddr> = value.parse().ok();
                let ip = ip.ok_or_else(|| wrong("client is an address without a port"))?;
                search.client = Some(ip.to_canonical());
            }
            "whole" => {
                search.whole = value.parse().map_err(|_| wrong("whole is true or false"))?;
            }
            _ => return Err(wrong("there are pool, n, id, client and whole")),
        }
    }
    Ok(search)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_for_is_read() {
        let found = search("pool=a%2Db&n=3&id=00c0ffee00c0ffee&client=::ffff:192.0.2.7").unwrap();
        assert_eq!((found.pool.as_deref(), found.count), (Some("a-b"), 3));
        assert_eq!(found.id.unwrap().to_string(), "00c0ffee00c0ffee");
        assert_eq!(found.client.unwrap().to_string(), "192.0.2.7");
        assert!(search("whole=true").unwrap().whole);
        assert_eq!(search("").unwrap(), Search { count: PICKS, ..Search::default() });
        for wrong in ["n=0", "n=1001", "n=x", "id=1", "client=a", "who=me", "pool=%", "whole=1"] {
            assert_eq!(search(wrong).unwrap_err().status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        assert!(question(b"{\"url\": \"http://a\"}").is_ok());
        for wrong in ["", "[]", "{}", "{\"url\": 1}", "{\"url\": \"a\", \"b\": 1}"] {
            assert!(question(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
