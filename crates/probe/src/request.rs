//! The request of an HTTP probe: what is asked, and what a good answer is.
//!
//! ```text
//! GET /healthz HTTP/1.1
//! Host: app.example
//! User-Agent: subak
//! Accept: */*
//! Connection: close
//! ```
//!
//! The host is the endpoint's own name or address unless another is given; `localhost` for a unix socket.
//! What was configured is read back by the strict grammar for requests before it is ever sent, so no
//! word can end a line early or mean something else to the endpoint.

use std::net::SocketAddr;

use subak_base::Address;
use subak_health::Expect;
use subak_message::h1::{Asked, Progress, parse_request};
use subak_message::{Fault, HeadError, HeadLimits, Known, Method, RequestHead, Scheme};

/// An HTTP probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpCheck {
    method: Method,
    host: Option<String>,
    target: String,
    /// Up to the value of Host, and from there on.
    before: String,
    after: &'static str,
    expect: Expect,
}

const AFTER: &str = "\r\nUser-Agent: subak\r\nAccept: */*\r\nConnection: close\r\n\r\n";
/// Methods that may carry a body have to say that there is none.
const AFTER_WITHOUT_BODY: &str =
    "\r\nUser-Agent: subak\r\nAccept: */*\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

impl HttpCheck {
    /// Asks by this method for this target, a path with its query.
    ///
    /// # Errors
    /// What makes the request one that Subak would refuse itself.
    pub fn new(
        method: Method,
        target: &str,
        host: Option<&str>,
        expect: Expect,
    ) -> Result<HttpCheck, HeadError> {
        let name = method.name().filter(|_| method != Method::Connect);
        let name = name.ok_or(HeadError { fault: Fault::Method, offset: 0 })?;
        let has_body = matches!(method, Method::Post | Method::Put | Method::Patch);
        let check = HttpCheck {
            method,
            host: host.map(str::to_owned),
            target: target.to_owned(),
            before: format!("{name} {target} HTTP/1.1\r\nHost: "),
            after: if has_body { AFTER_WITHOUT_BODY } else { AFTER },
            expect,
        };
        check.read_back(target)?;
        Ok(check)
    }

    /// The same for an endpoint that has a name; where no other host was given it is asked by that.
    #[must_use]
    pub fn named(&self, name: &str) -> HttpCheck {
        let host = self.host.clone().or_else(|| Some(name.to_owned()));
        HttpCheck { host, ..self.clone() }
    }

    /// What makes an answer a good one.
    pub fn expect(&self) -> &Expect {
        &self.expect
    }

    /// As far as it decides how the answer is framed.
    pub(crate) fn asked(&self) -> Asked {
        Asked { method: self.method, upgrade: false }
    }

    /// The request as it goes to this endpoint.
    pub(crate) fn bytes(&self, to: &Address) -> Vec<u8> {
        let mut request = Vec::with_capacity(self.before.len() + self.after.len() + 64);
        request.extend_from_slice(self.before.as_bytes());
        request.extend_from_slice(self.authority(to).as_bytes());
        request.extend_from_slice(self.after.as_bytes());
        request
    }

    /// By what name this endpoint is asked.
    pub(crate) fn authority(&self, to: &Address) -> String {
        authority(self.host.as_deref(), to)
    }

    /// A path with its query.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// As it is written.
    pub(crate) fn method(&self) -> &'static str {
        self.method.name().unwrap_or("GET")
    }

    /// The target and the host must come back as they were given, and nothing must be left over.
    fn read_back(&self, target: &str) -> Result<(), HeadError> {
        let refused = |fault| Err(HeadError { fault, offset: 0 });
        let text = self.bytes(&Address::Unix("/".into()));
        let mut head = RequestHead::new(Scheme::Http);
        match parse_request(&text, &HeadLimits::default(), &mut head)? {
            Progress::Complete { consumed, .. } if consumed == text.len() => {}
            _ => return refused(Fault::RequestLine),
        }
        if head.target() != target.as_bytes() || !target.starts_with('/') {
            return refused(Fault::TargetForm);
        }
        let host = head.fields.get(Known::Host);
        if self.host.as_ref().is_some_and(|wanted| host != Some(wanted.as_bytes())) {
            return refused(Fault::HostInvalid);
        }
        Ok(())
    }
}

/// A name, or else the address, by which an endpoint is asked.
pub(crate) fn authority(host: Option<&str>, to: &Address) -> String {
    match (host, to) {
        (Some(host), _) => host.to_owned(),
        // Without the scope of a link-local address, which means nothing to the other end.
        (None, Address::Inet(address)) => SocketAddr::new(address.ip(), address.port()).to_string(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(method: Method, target: &str, host: Option<&str>) -> Result<HttpCheck, HeadError> {
        HttpCheck::new(method, target, host, Expect::default())
    }

    fn text(check: &HttpCheck, to: &str) -> String {
        let to = Address::inet(to.parse().expect("an address"));
        String::from_utf8(check.bytes(&to)).expect("text")
    }

    #[test]
    fn the_request_is_this_one() {
        let check = new(Method::Get, "/healthz?deep=1", None).unwrap();
        assert_eq!(
            text(&check, "[2001:db8::4]:8080"),
            "GET /healthz?deep=1 HTTP/1.1\r\nHost: [2001:db8::4]:8080\r\nUser-Agent: subak\r\n\
             Accept: */*\r\nConnection: close\r\n\r\n"
        );
        let check = new(Method::Head, "/", Some("app.example")).unwrap();
        assert!(
            text(&check, "10.0.0.2:80").starts_with("HEAD / HTTP/1.1\r\nHost: app.example\r\n")
        );
        let check = new(Method::Post, "/", None).unwrap();
        assert!(text(&check, "10.0.0.2:80").contains("\r\nContent-Length: 0\r\n"));
        let unix = check.bytes(&Address::Unix("/run/app.sock".into()));
        assert!(String::from_utf8_lossy(&unix).contains("\r\nHost: localhost\r\n"));
        let scoped = text(&check, "[fe80::1%3]:80");
        assert!(scoped.contains("\r\nHost: [fe80::1]:80\r\n"), "{scoped}");
        let named = new(Method::Get, "/", None).unwrap().named("app.internal:8080");
        let named = text(&named, "10.0.0.2:8080");
        assert!(named.contains("\r\nHost: app.internal:8080\r\n"), "{named}");
        let named = new(Method::Get, "/", Some("app.example")).unwrap().named("app.internal");
        assert!(text(&named, "10.0.0.2:80").contains("\r\nHost: app.example\r\n"));
    }

    #[test]
    fn words_that_mean_something_else_on_the_wire_are_refused() {
        for target in [
            "",
            "healthz",
            "*",
            "http://other/",
            "/a b",
            "/a\r\nX: y",
            "/a HTTP/1.1\r\nX: y",
            "/a HTTP/1.1\r\nHost: x\r\n\r\nGET /b",
            "/\0",
            "/#a",
        ] {
            assert!(new(Method::Get, target, None).is_err(), "{target:?}");
        }
        for host in
            ["", "a b", "a\r\nX: y", "a\r\n\r\nGET / HTTP/1.1\r\nHost: b", " a", "a/b", "a@b"]
        {
            assert!(new(Method::Get, "/", Some(host)).is_err(), "{host:?}");
        }
        for method in [Method::Connect, Method::Other] {
            assert!(new(method, "/", None).is_err());
        }
    }
}
