//! What a route asks of a request besides its host and path: method, client, headers, cookies and
//! parameters of the query.
//!
//! Every condition of a route has to hold. One is met by any item of its list, and by any of several
//! values of a name; a condition that is negated holds when its test is not met by all of them. Values are compared byte by byte and with case, except
//! that parameters of the query are decoded first (`%20` and `+` are spaces).

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::headers::HeaderName;
use crate::pattern::{Expression, HostPattern, PathPattern};

/// One thing that a route asks of a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// It holds when the test is not met.
    pub negated: bool,
    /// What is looked at.
    pub test: Test,
}

/// What a condition looks at, and what it wants to see.
#[derive(Clone, PartialEq, Debug)]
pub enum Test {
    /// Any of these hosts.
    Host(Vec<HostPattern>),
    /// The normalised path.
    Path(PathPattern),
    /// Any of these methods.
    Method(Vec<Box<str>>),
    /// The client's address, as far as trusted proxies tell it.
    Client(Networks),
    /// Any field of this name.
    Header(HeaderName, Vec<ValuePattern>),
    /// Any cookie of this name.
    Cookie(Box<str>, Vec<ValuePattern>),
    /// Any parameter of this name, decoded.
    Query(Box<str>, Vec<ValuePattern>),
}

/// Networks of clients.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Networks {
    /// Any of these.
    pub networks: Vec<IpNet>,
    /// Or whoever came through a unix socket and is named by nobody.
    pub unix: bool,
}

impl Networks {
    /// Whether a client belongs to them. An IPv4 client that arrives v4-mapped counts as IPv4.
    pub fn contains(&self, client: Option<IpAddr>) -> bool {
        client.map_or(self.unix, |ip| {
            let ip = ip.to_canonical();
            self.networks.iter().any(|network| network.contains(&ip))
        })
    }
}

/// What a value has to look like: every test has to be met.
#[derive(Clone, PartialEq, Debug)]
pub struct ValuePattern {
    /// At least one.
    pub tests: Vec<ValueTest>,
}

/// A test of one value.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueTest {
    /// It is this one.
    Exact(Box<str>),
    /// It begins so.
    Prefix(Box<str>),
    /// It ends so.
    Suffix(Box<str>),
    /// This is somewhere in it.
    Contains(Box<str>),
    /// The expression is found in it.
    Regex(Expression),
    /// There is one at all; whatever it is.
    Present,
    /// There is none.
    Absent,
}

impl ValuePattern {
    /// Whether this value is one of those.
    pub fn matches(&self, value: &[u8]) -> bool {
        self.tests.iter().all(|test| test.is_met_by(value))
    }

    /// Whether it wants no value at all.
    pub fn wants_none(&self) -> bool {
        self.tests.contains(&ValueTest::Absent)
    }
}

impl ValueTest {
    fn is_met_by(&self, value: &[u8]) -> bool {
        match self {
            ValueTest::Exact(text) => value == text.as_bytes(),
            ValueTest::Prefix(text) => value.starts_with(text.as_bytes()),
            ValueTest::Suffix(text) => value.ends_with(text.as_bytes()),
            ValueTest::Contains(text) => contains(value, text.as_bytes()),
            ValueTest::Regex(expression) => expression.regex().is_match(value),
            ValueTest::Present => true,
            ValueTest::Absent => false,
        }
    }
}

/// Whether the values of a name, all of them, meet any of these patterns.
pub fn any_matches<'a>(
    patterns: &[ValuePattern],
    values: impl Iterator<Item = Cow<'a, [u8]>>,
) -> bool {
    let mut is_there = false;
    for value in values {
        is_there = true;
        if patterns.iter().any(|pattern| pattern.matches(&value)) {
            return true;
        }
    }
    !is_there && patterns.iter().any(ValuePattern::wants_none)
}

/// Whether every value of a name meets one of these patterns; without a value, whether one of them wants
/// none.
pub fn all_match<'a>(
    patterns: &[ValuePattern],
    values: impl Iterator<Item = Cow<'a, [u8]>>,
) -> bool {
    let mut is_there = false;
    for value in values {
        is_there = true;
        if !patterns.iter().any(|pattern| pattern.matches(&value)) {
            return false;
        }
    }
    is_there || patterns.iter().any(ValuePattern::wants_none)
}

/// The decoded values of the parameters of this name. One without `=` has an empty value.
pub fn parameters<'a>(
    query: Option<&'a [u8]>,
    name: &'a [u8],
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let pieces = query.into_iter().flat_map(|query| query.split(|byte| *byte == b'&'));
    pieces.filter(|piece| !piece.is_empty()).filter_map(move |piece| {
        let equals = piece.iter().position(|byte| *byte == b'=');
        let (key, value) = piece.split_at(equals.unwrap_or(piece.len()));
        (*decoded(key) == *name).then(|| decoded(value.strip_prefix(b"=").unwrap_or(value)))
    })
}

/// Without percent-encoding, `+` as a space (WHATWG URL, application/x-www-form-urlencoded). What is
/// no encoding stays. Copied only where something is encoded.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, digit(text.get(at)), digit(text.get(at + 1))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                at += 2;
            }
            (b'+', ..) => out.push(b' '),
            _ => out.push(byte),
        }
    }
    Cow::Owned(out)
}

fn contains(value: &[u8], part: &[u8]) -> bool {
    part.is_empty() || value.windows(part.len()).any(|window| window == part)
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            out.write_str("not ")?;
        }
        self.test.fmt(out)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Host(hosts) => write!(out, "host {}", any(hosts.iter().map(show_host))),
            Test::Path(path) => match path {
                PathPattern::Any => out.write_str("path any"),
                PathPattern::Exact(path) => write!(out, "path {path}"),
                PathPattern::Prefix(path) => write!(out, "path begins with {path}"),
                PathPattern::Regex(expression) => write!(out, "path has {}", expression.as_str()),
            },
            Test::Method(methods) => {
                write!(out, "method {}", any(methods.iter().map(|method| method.to_string())))
            }
            Test::Client(clients) => {
                let unix = clients.unix.then(|| "unix".to_string());
                let networks = clients.networks.iter().map(IpNet::to_string).chain(unix);
                write!(out, "client in {}", any(networks))
            }
            Test::Header(name, values) => write!(out, "header {name} {}", show_values(values)),
            Test::Cookie(name, values) => write!(out, "cookie {name} {}", show_values(values)),
            Test::Query(name, values) => write!(out, "query {name} {}", show_values(values)),
        }
    }
}

fn show_host(host: &HostPattern) -> String {
    match host {
        HostPattern::Exact(name) => name.to_string(),
        HostPattern::Suffix(name) => format!("*{name}"),
    }
}

fn show_values(patterns: &[ValuePattern]) -> String {
    any(patterns.iter().map(|pattern| {
        let tests: Vec<String> = pattern.tests.iter().map(ToString::to_string).collect();
        tests.join(" and ")
    }))
}

fn any(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(" or ")
}

impl fmt::Display for ValueTest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueTest::Exact(text) => write!(out, "is {text:?}"),
            ValueTest::Prefix(text) => write!(out, "begins with {text:?}"),
            ValueTest::Suffix(text) => write!(out, "ends with {text:?}"),
            ValueTest::Contains(text) => write!(out, "contains {text:?}"),
            ValueTest::Regex(expression) => write!(out, "has {}", expression.as_str()),
            ValueTest::Present => out.write_str("is there"),
            ValueTest::Absent => out.write_str("is not there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Networks, contains, decoded, parameters};

    #[test]
    fn parameters_are_decoded_and_found_by_their_decoded_name() {
        let values = |query: &str, name: &str| -> Vec<String> {
            parameters(Some(query.as_bytes()), name.as_bytes())
                .map(|value| String::from_utf8_lossy(&value).into_owned())
                .collect()
        };
        assert_eq!(values("a=1&b=2&a=3", "a"), ["1", "3"]);
        assert_eq!(values("%61=x%20y+z", "a"), ["x y z"]);
        assert_eq!(values("a&b&=c", "a"), [""]);
        assert_eq!(values("a=b=c", "a"), ["b=c"]);
        assert_eq!(values("A=1&aa=2", "a"), [""; 0]);
        assert_eq!(values("a=100%&a=%zz&a=%4", "a"), ["100%", "%zz", "%4"]);
        assert!(parameters(None, b"a").next().is_none());
        assert!(parameters(Some(b""), b"").next().is_none());
    }

    #[test]
    fn nothing_is_copied_without_need() {
        assert!(matches!(decoded(b"plain"), std::borrow::Cow::Borrowed(_)));
        assert_eq!(&*decoded(b"%2B"), b"+");
        assert!(contains(b"abc", b"bc") && contains(b"", b"") && !contains(b"ab", b"abc"));
    }

    #[test]
    fn a_mapped_client_is_the_same_client() {
        let clients = Networks { networks: vec!["10.0.0.0/8".parse().unwrap()], unix: false };
        for (client, inside) in
            [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("11.0.0.1", false), ("::1", false)]
        {
            assert_eq!(clients.contains(Some(client.parse().unwrap())), inside, "{client}");
        }
        assert!(!clients.contains(None));
        assert!(Networks { unix: true, ..clients }.contains(None));
    }
}
