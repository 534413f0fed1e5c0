//! What an answer has to be like, beside a 2xx status: checks.
//!
//! | written | holds when |
//! |---|---|
//! | `status=200`, `status=200-299` | the status is that, or within |
//! | `body~text` | the body contains the text |
//! | `header:name` | there is such a header |
//! | `header:name=value` | and that is its value |

use std::fmt;
use std::str::FromStr;

use memchr::memmem;

/// The most of an answer that is kept for checks of its body.
pub const MAX_CHECKED_BODY: usize = 1 << 20;

/// One thing that an answer has to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The status is from the first to the second.
    Status(u16, u16),
    /// The body (its first MiB) contains this.
    Body(String),
    /// There is such a header, with that value where one is given.
    Header(String, Option<String>),
}

impl Check {
    /// Whether the body has to be kept for it.
    pub(super) fn wants_body(&self) -> bool {
        matches!(self, Check::Body(_))
    }

    /// Whether it holds; `field` gives the value of a header.
    pub(super) fn holds<'a>(
        &self,
        status: u16,
        field: impl Fn(&str) -> Option<&'a [u8]>,
        body: &[u8],
    ) -> bool {
        match self {
            Check::Status(from, to) => (*from..=*to).contains(&status),
            Check::Body(text) => memmem::find(body, text.as_bytes()).is_some(),
            Check::Header(name, None) => field(name).is_some(),
            Check::Header(name, Some(value)) => field(name) == Some(value.as_bytes()),
        }
    }
}

/// The value of a header in the head of an HTTP/1 answer.
pub(super) fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let (start, rest) = (line.get(..name.len())?, line.get(name.len()..)?);
        let value = rest.strip_prefix(b":")?;
        start.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

/// The contents of a chunked body that is whole.
pub(super) fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = memmem::find(bytes, b"\r\n") {
        let digits = bytes[..line].split(|byte| *byte == b';').next().unwrap_or_default();
        let digits = std::str::from_utf8(digits.trim_ascii()).unwrap_or_default();
        let size = usize::from_str_radix(digits, 16).unwrap_or(0);
        let Some(chunk) = bytes.get(line + 2..).and_then(|rest| rest.get(..size)) else { break };
        if size == 0 {
            break;
        }
        body.extend_from_slice(chunk);
        bytes = bytes.get(line + 2 + size + 2..).unwrap_or_default();
    }
    body
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Status(from, to) if from == to => write!(f, "status={from}"),
            Check::Status(from, to) => write!(f, "status={from}-{to}"),
            Check::Body(text) => write!(f, "body~{text}"),
            Check::Header(name, None) => write!(f, "header:{name}"),
            Check::Header(name, Some(value)) => write!(f, "header:{name}={value}"),
        }
    }
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Check, String> {
        let known = "a check is status=200, status=200-299, body~text, header:name or \
                     header:name=value";
        if let Some(range) = text.strip_prefix("status=") {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            return match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) if (100..=599).contains(&from) && from <= to => {
                    Ok(Check::Status(from, to))
                }
                _ => Err(format!("{range:?} is no status, 100 to 599; {known}")),
            };
        }
        if let Some(text) = text.strip_prefix("body~").filter(|text| !text.is_empty()) {
            return Ok(Check::Body(text.to_owned()));
        }
        match text.strip_prefix("header:").map(|rest| rest.split_once('=').ok_or(rest)) {
            Some(Ok((name, value))) if !name.is_empty() => {
                Ok(Check::Header(name.to_owned(), Some(value.to_owned())))
            }
            Some(Err(name)) if !name.is_empty() => Ok(Check::Header(name.to_owned(), None)),
            _ => Err(format!("{text:?} is no check; {known}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_and_written_alike() {
        for text in ["status=200", "status=200-299", "body~ok", "header:a", "header:a=b=c"] {
            assert_eq!(text.parse::<Check>().expect(text).to_string(), text);
        }
        for wrong in ["", "status=20", "status=300-200", "body~", "header:", "header:=x", "size=3"]
        {
            wrong.parse::<Check>().expect_err(wrong);
        }
    }

    #[test]
    fn checks_look_at_status_headers_and_body() {
        let head = b"HTTP/1.1 204 No Content\r\nServer: nginx\r\nX-Endpoint:  a \r\n\r\n";
        let holds = |text: &str| {
            let check: Check = text.parse().expect("a check");
            check.holds(204, |name| field(head, name), b"all is well")
        };
        for good in
            ["status=204", "status=200-299", "header:x-endpoint=a", "header:SERVER", "body~is"]
        {
            assert!(holds(good), "{good}");
        }
        for bad in ["status=200", "header:x-end", "header:x-endpoint=b", "body~ill"] {
            assert!(!holds(bad), "{bad}");
        }
    }

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(unchunked(b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nT: r\r\n\r\n"), b"abcde");
        assert_eq!(unchunked(b"ff\r\nshort"), b"");
    }
}
