//! Which dialect of the metrics does a client want?
//!
//! Prometheus names everything it can read, with the weight of each. OpenMetrics is written for who asks
//! for it by name, version 1.0.0 or any, and does not like the plain text more. Everybody else gets that.
//!
//! Source: RFC 9110, section 12.5.1.

use http::HeaderMap;
use http::header::ACCEPT;
use subak_telemetry::Dialect;

/// The dialect for these fields.
pub(crate) fn dialect(fields: &HeaderMap) -> Dialect {
    let (mut openmetrics, mut plain) = (0, 0);
    let lines = fields.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    for range in lines.flat_map(|line| line.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut weight, mut version) = (1000, None);
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => weight = thousandths(value),
                "version" => version = Some(value.trim().trim_matches('"').to_owned()),
                _ => {}
            }
        }
        match &*kind {
            "application/openmetrics-text" if version.is_none_or(|version| version == "1.0.0") => {
                openmetrics = openmetrics.max(weight);
            }
            "text/plain" => plain = plain.max(weight),
            _ => {}
        }
    }
    match openmetrics > 0 && openmetrics >= plain {
        true => Dialect::OpenMetrics,
        false => Dialect::Prometheus,
    }
}

/// A weight from 0 to 1 in thousandths; what is none counts as nothing.
fn thousandths(weight: &str) -> u32 {
    let weight: f64 = weight.trim().parse().unwrap_or(0.0);
    if (0.0..=1.0).contains(&weight) { (weight * 1000.0) as u32 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn who_asks_for_openmetrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
            version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, expected) in [
            (prometheus, Dialect::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", Dialect::OpenMetrics),
            ("text/plain;q=0.4, application/openmetrics-text;q=0.4", Dialect::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Dialect::Prometheus),
            ("application/openmetrics-text;q=0", Dialect::Prometheus),
            ("application/openmetrics-text;q=x", Dialect::Prometheus),
            ("application/openmetrics-text;q=0.3,text/plain", Dialect::Prometheus),
            ("*/*", Dialect::Prometheus),
            ("", Dialect::Prometheus),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert(ACCEPT, HeaderValue::from_str(accept).expect("a value"));
            assert_eq!(dialect(&fields), expected, "{accept}");
        }
        assert_eq!(dialect(&HeaderMap::new()), Dialect::Prometheus);
    }
}
