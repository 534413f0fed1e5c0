//! Lines of Subak's JSON: the default keys, or a chosen list of them.

use std::borrow::Cow;

use serde::Deserialize;

use crate::line::{Line, MONTH_MICROS, Meaning, Unit};

/// The keys that matter here; a line may have more.
#[derive(Deserialize)]
struct Keys<'a> {
    #[serde(borrow)]
    time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    client: Option<Cow<'a, str>>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    query: Option<Cow<'a, str>>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pool: Option<Cow<'a, str>>,
    #[serde(borrow)]
    endpoint: Option<Cow<'a, str>>,
    status: Option<u16>,
    bytes_out: Option<u64>,
    head_ms: Option<f64>,
    queue_ms: Option<f64>,
    first_byte_ms: Option<f64>,
    endpoint_ms: Option<f64>,
    total_ms: Option<f64>,
    #[serde(borrow)]
    end: Option<Cow<'a, str>>,
}

/// Hands what the line says to `take`, unless it is of another format. `target` is room for a path
/// with its query.
pub(crate) fn line(text: &[u8], target: &mut Vec<u8>, take: impl FnOnce(&Line<'_>)) -> bool {
    let Ok(keys) = serde_json::from_slice::<Keys<'_>>(text) else { return false };
    let bytes = |text: &'_ Option<Cow<'_, str>>| text.as_ref().map(|text| text.len());
    if bytes(&keys.time).is_none() {
        return false;
    }
    target.clear();
    if let (Some(path), Some(query)) = (&keys.path, &keys.query) {
        target.extend_from_slice(path.as_bytes());
        target.push(b'?');
        target.extend_from_slice(query.as_bytes());
    }
    let mut line = Line::default();
    let mut is_right = true;
    for (meaning, value) in [
        (Meaning::IsoMoment, &keys.time),
        (Meaning::Client, &keys.client),
        (Meaning::RequestLine, &keys.request),
        (Meaning::Method, &keys.method),
        (Meaning::Uri, &keys.url),
        (Meaning::Uri, &keys.path),
        (Meaning::Pool, &keys.pool),
        (Meaning::Endpoint, &keys.endpoint),
    ] {
        if let Some(value) = value {
            is_right &= line.set(meaning, value.as_bytes());
        }
    }
    if !target.is_empty() {
        line.uri = Some(target);
    }
    // Without an answer the status is null, and `end` says why.
    let has_ended_well = keys.end.as_ref().is_none_or(|end| end == "ok");
    line.status = keys.status.or((!has_ended_well).then_some(499));
    line.bytes_out = keys.bytes_out;
    line.total = micros(keys.total_ms);
    line.at_endpoint = micros(keys.endpoint_ms);
    line.first_byte = micros(keys.first_byte_ms);
    line.before = match (micros(keys.head_ms), micros(keys.queue_ms)) {
        (None, None) => None,
        (head, queue) => Some(head.unwrap_or(0) + queue.unwrap_or(0)),
    };
    if is_right {
        take(&line);
    }
    is_right
}

fn micros(millis: Option<f64>) -> Option<u64> {
    let millis = millis.filter(|millis| *millis >= 0.0)?;
    let micros = (millis * f64::from(Unit::Millis.micros() as u32) + 0.5) as u64;
    (micros < MONTH_MICROS).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::line;

    const LINE: &str = r#"{"time":"2026-11-21T17:12:33.123Z","listener":"web","client":"192.0.2.7","client_port":51312,"method":"GET","scheme":"http","host":"example.com","path":"/a\u00e9","query":"q=1","protocol":"HTTP/1.1","status":200,"bytes_in":78,"bytes_out":251,"route":null,"pool":"app","endpoint":"10.0.0.2:8080","tries":1,"queue_ms":0.5,"connect_ms":0.213,"first_byte_ms":1.042,"total_ms":1.310,"end":"ok","fault":null,"user_agent":"curl/8.5.0","referer":null,"decision":"3f6c0a9d5be81742"}"#;

    #[test]
    fn a_line_of_the_default_keys() {
        let mut count = 0;
        assert!(line(LINE.as_bytes(), &mut Vec::new(), |line| {
            count += 1;
            assert_eq!(line.uri, Some("/aé?q=1".as_bytes()));
            assert_eq!(line.endpoint, Some(&b"10.0.0.2:8080"[..]));
            assert_eq!((line.total, line.before), (Some(1_310), Some(500)));
            assert_eq!((line.first_byte, line.at_endpoint), (Some(1_042), None));
        }));
        assert_eq!(count, 1);
    }

    #[test]
    fn a_few_chosen_keys_do_and_other_lines_do_not() {
        let mut room = Vec::new();
        let chosen = br#"{"time":"2026-11-21T17:12:33.123Z","status":null,"end":"client_gone"}"#;
        assert!(line(chosen, &mut room, |line| assert_eq!(line.status, Some(499))));
        for other in [&b"{}"[..], b"{", b"1.2.3.4 - - []", br#"{"time":"now"}"#, b"[]"] {
            assert!(!line(other, &mut room, |_| {}), "{}", String::from_utf8_lossy(other));
        }
    }
}
