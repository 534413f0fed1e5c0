//! What request is meant: a method, a URL, header fields and a client.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Bytes of a URL, and fields, that a question may have; a listener's own limits are usually lower.
const URL_MAX: usize = 64 * 1024;
const FIELDS_MAX: usize = 256;

/// A request that is only asked about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// As it is sent; `GET` where nothing is said.
    #[serde(default = "get")]
    pub method: String,
    /// With scheme and host: `http://shop.example.com/cart?x=1`.
    pub url: String,
    /// The other end of the client's connection: an address, with or without a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Names and values, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The listener it arrives at; without one, the URL decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
}

fn get() -> String {
    "GET".into()
}

/// The parts of a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// Whether it begins with `https`.
    pub is_tls: bool,
    /// Without brackets and port.
    pub host: String,
    /// As it stands there.
    pub port: Option<u16>,
    /// Host and port as they stand there.
    pub authority: String,
    /// Path and query; begins with `/`.
    pub target: String,
}

/// Why a question cannot be answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadQuestion {
    /// What is wrong.
    pub error: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for BadQuestion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}\n  {}", self.error, self.hint)
    }
}

impl std::error::Error for BadQuestion {}

impl BadQuestion {
    /// What is wrong, and what to do.
    pub fn new(error: impl Into<String>, hint: impl Into<String>) -> BadQuestion {
        BadQuestion { error: error.into(), hint: hint.into() }
    }
}

impl Question {
    /// A GET without anything else.
    pub fn get(url: impl Into<String>) -> Question {
        let url = url.into();
        Question { method: get(), url, client: None, headers: Vec::new(), listener: None }
    }

    /// The parts of its URL. One without a scheme is by HTTP.
    ///
    /// # Errors
    /// For what is no such URL.
    pub fn url(&self) -> Result<Url, BadQuestion> {
        let bad = |error: &str| {
            let hint = "write it as http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH";
            BadQuestion::new(format!("{:?}: {error}", self.url), hint)
        };
        if self.url.len() > URL_MAX {
            return Err(BadQuestion::new("the URL is too long", "64 KiB are the most"));
        }
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        let is_tls = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => false,
            _ if scheme.eq_ignore_ascii_case("https") => true,
            _ => return Err(bad("the scheme is neither http nor https")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let target = target.split('#').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(bad("a user name belongs into a header"));
        }
        let (host, port) = split_port(authority).ok_or_else(|| bad("the port is no number"))?;
        if host.is_empty() {
            return Err(bad("there is no host"));
        }
        if target.bytes().chain(authority.bytes()).any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(bad("there are spaces or control characters in it; %20 is a space"));
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}");
        let (host, authority) = (host.to_owned(), authority.to_owned());
        Ok(Url { is_tls, host, port, authority, target })
    }

    /// The other end of the client's connection; 127.0.0.1 where nobody is named.
    ///
    /// # Errors
    /// For what is no address.
    pub fn peer(&self) -> Result<SocketAddr, BadQuestion> {
        let text = self.client.as_deref().unwrap_or("127.0.0.1");
        let by_ip = || {
            let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            bare.unwrap_or(text).parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0))
        };
        text.parse().ok().or_else(by_ip).ok_or_else(|| {
            let hint = "write an address such as 192.0.2.7, 192.0.2.7:50000 or [2001:db8::7]:50000";
            BadQuestion::new(format!("the client {text:?} is no address"), hint)
        })
    }

    /// The request as a client would send it by HTTP/1.1.
    ///
    /// # Errors
    /// When that would not be one request.
    pub fn head(&self, url: &Url) -> Result<Vec<u8>, BadQuestion> {
        let is_odd = |text: &str| text.bytes().any(|byte| byte < b' ' && byte != b'\t');
        let is_token = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
        };
        if !is_token(&self.method) {
            let error = format!("the method {:?} cannot be sent", self.method);
            return Err(BadQuestion::new(error, "a method is one word, such as GET or POST"));
        }
        if self.headers.len() > FIELDS_MAX {
            return Err(BadQuestion::new("there are too many headers", "256 are the most"));
        }
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, url.target);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", url.authority);
        }
        for (name, value) in &self.headers {
            if !is_token(name) || is_odd(value) {
                let error = format!("the header {:?} cannot be sent", format!("{name}: {value}"));
                return Err(BadQuestion::new(error, "write it as Name: value, on one line"));
            }
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        Ok(head.into_bytes())
    }
}

/// Host without brackets, and port; none when the port cannot be read.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    match port {
        None => Some((host, None)),
        Some(port) => Some((host, Some(port.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Option<(bool, String, Option<u16>, String)> {
        let url = Question::get(text).url().ok()?;
        Some((url.is_tls, url.host, url.port, url.target))
    }

    #[test]
    fn urls_come_apart() {
        let parts = |is_tls, host: &str, port, target: &str| {
            Some((is_tls, host.to_owned(), port, target.to_owned()))
        };
        assert_eq!(url("http://a.example/b?c#d"), parts(false, "a.example", None, "/b?c"));
        assert_eq!(url("HTTPS://[::1]:8443"), parts(true, "::1", Some(8443), "/"));
        assert_eq!(url("a.example:80?x"), parts(false, "a.example", Some(80), "/?x"));
        for wrong in ["", "ftp://a/", "http:///x", "http://a:b/", "http://u@a/", "http://a/b c"] {
            assert_eq!(url(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_that_is_asked_becomes_two_requests() {
        let head = |question: &Question| question.head(&question.url().unwrap());
        let plain = Question::get("http://a/b");
        assert_eq!(head(&plain).unwrap(), b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
        let with = |name: &str, value: &str| Question {
            headers: vec![(name.into(), value.into())],
            ..plain.clone()
        };
        assert_eq!(head(&with("host", "c")).unwrap(), b"GET /b HTTP/1.1\r\nhost: c\r\n\r\n");
        assert!(head(&with("A", "b\r\nC: d")).is_err());
        assert!(head(&with("A b", "")).is_err());
        assert!(head(&Question { method: "GET /x".into(), ..plain.clone() }).is_err());
    }

    #[test]
    fn clients_are_addresses() {
        let peer = |client: &str| {
            let question = Question { client: Some(client.into()), ..Question::get("http://a") };
            question.peer().map(|peer| peer.to_string()).ok()
        };
        assert_eq!(peer("192.0.2.7").as_deref(), Some("192.0.2.7:0"));
        assert_eq!(peer("[2001:db8::7]:50").as_deref(), Some("[2001:db8::7]:50"));
        assert_eq!(peer("2001:db8::7").as_deref(), Some("[2001:db8::7]:0"));
        assert_eq!(peer("somebody"), None);
    }
}
