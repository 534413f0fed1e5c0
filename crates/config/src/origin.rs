//! Names in the place of addresses, as configurations write them.

use crate::model::Origin;
use crate::problem::Problem;

/// The longest name, and the longest part between two dots, that DNS can hold.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// `_http._tcp.app.internal`, behind `srv:`.
pub(crate) fn service(text: &str) -> Result<Origin, Problem> {
    if let Some((name, port)) = text.rsplit_once(':')
        && port.bytes().all(|byte| byte.is_ascii_digit())
    {
        let problem = Problem::expected("SRV records say the port", "expected no port");
        let problem = problem.at(name.len()..text.len());
        return Err(problem.help(format!("without it: \"srv:{name}\"")));
    }
    Ok(Origin::Service(name(text)?.into()))
}

/// `app.internal` of `app.internal:8080`.
pub(crate) fn host(text: &str, port: u16) -> Result<Origin, Problem> {
    let host = name(text)?;
    let is_service = host.starts_with('_') && (host.contains("._tcp") || host.contains("._udp"));
    if is_service {
        let expected = "expected the name of a host";
        let problem = Problem::expected("this is the name of a service", expected);
        return Err(problem.help(format!("what its SRV records list: \"srv:{host}\"")));
    }
    Ok(Origin::Host { host: host.into(), port })
}

/// A name in lower case, without the dot that may end it.
fn name(text: &str) -> Result<String, Problem> {
    let malformed =
        |message: &str| Problem::expected(message, "expected one such as \"app.internal\"");
    if text.is_empty() {
        return Err(malformed("the name is missing"));
    }
    if text.starts_with("*.") {
        return Err(malformed("this stands for more than one name"));
    }
    let whole = text.strip_suffix('.').unwrap_or(text);
    if whole.len() > MAX_NAME_BYTES {
        return Err(malformed("this name is too long")
            .help(format!("a name has at most {MAX_NAME_BYTES} bytes, this one {}", whole.len())));
    }
    let is_odd = |character: char| {
        !character.is_ascii_alphanumeric() && !matches!(character, '-' | '_' | '.')
    };
    if let Some((at, character)) = whole.char_indices().find(|(_, character)| is_odd(*character)) {
        let problem = malformed("this character cannot stand in a name");
        let problem = problem.at(at..at + character.len_utf8());
        return Err(match character.is_ascii() {
            true => problem,
            false => {
                problem.help("names of other scripts are written in their form for DNS: xn--…")
            }
        });
    }
    let mut begin = 0;
    for label in whole.split('.') {
        let at = begin..begin + label.len();
        begin = at.end + 1;
        let message = match label {
            "" => "two dots of this name have nothing between them",
            _ if label.len() > MAX_LABEL_BYTES => "this part of the name has more than 63 bytes",
            _ if label.starts_with('-') || label.ends_with('-') => {
                "a part of a name neither begins nor ends with a hyphen"
            }
            _ => continue,
        };
        // An empty part has no bytes to point at.
        let problem = malformed(message);
        return Err(if at.is_empty() { problem } else { problem.at(at) });
    }
    let last = whole.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed("this is neither an address nor a name"));
    }
    Ok(whole.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{host, service};

    #[test]
    fn reads_names_and_makes_them_equal() {
        for (text, canonical) in [
            ("app.internal", "app.internal:80"),
            ("App.Internal.", "app.internal:80"),
            ("app", "app:80"),
            ("10.example", "10.example:80"),
            ("my_app.internal", "my_app.internal:80"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example:80"),
        ] {
            assert_eq!(host(text, 80).map(|origin| origin.to_string()).as_deref(), Ok(canonical));
        }
        let read = service("_http._tcp.App.internal.").map(|origin| origin.to_string());
        assert_eq!(read.as_deref(), Ok("srv:_http._tcp.app.internal"));
    }

    #[test]
    fn refuses_what_dns_cannot_hold() {
        let long = "a.".repeat(127) + "aaaa";
        let label = "a".repeat(64) + ".internal";
        for text in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "-a.b",
            "a-.b",
            "a b",
            "a/b",
            "é.b",
            "*.a",
            "1.2.3",
            "a.1",
            "a:b",
            "[a]",
            "_http._tcp.a",
            &long,
            &label,
        ] {
            let problem = host(text, 80).expect_err(text);
            if let Some(at) = problem.at {
                assert!(text.get(at.clone()).is_some(), "{text} {at:?}");
            }
        }
        let problem = service("_http._tcp.a:80").expect_err("a port");
        assert_eq!(problem.help.as_deref(), Some("without it: \"srv:_http._tcp.a\""));
    }
}
