//! What a route matches: hosts and paths.

use regex::bytes::{Regex, RegexBuilder};
use subak_message::{Fault, PathRules, path};

use crate::defaults::MAX_REGEX_BYTES;
use crate::problem::Problem;

/// The longest host name the DNS can hold.
const MAX_HOST_BYTES: usize = 253;

/// A host, in lower case, without a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HostPattern {
    /// Exactly this one; an IPv6 literal keeps its brackets.
    Exact(Box<str>),
    /// Written `*.example.com`, kept as `.example.com`: one label or more before it.
    Suffix(Box<str>),
}

impl HostPattern {
    /// Whether a host matches. `host` is in lower case, without a port.
    pub fn matches(&self, host: &[u8]) -> bool {
        match self {
            HostPattern::Exact(exact) => exact.as_bytes() == host,
            HostPattern::Suffix(suffix) => {
                host.len() > suffix.len() && host.ends_with(suffix.as_bytes())
            }
        }
    }
}

/// Which normalised paths match.
#[derive(Clone, PartialEq, Debug)]
pub enum PathPattern {
    /// Every path.
    Any,
    /// Exactly this path.
    Exact(Box<str>),
    /// Paths that begin with these bytes: `/v2/` takes `/v2/x` but not `/v2`, `/v2` takes `/v20`.
    Prefix(Box<str>),
    /// Paths in which the expression is found.
    Regex(Expression),
}

impl PathPattern {
    /// Whether a normalised path (without its query) matches.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            PathPattern::Any => true,
            PathPattern::Exact(exact) => exact.as_bytes() == path,
            PathPattern::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            PathPattern::Regex(regex) => regex.0.is_match(path),
        }
    }
}

/// A compiled expression; equal when its text is. Not anchored unless it says so by `^` and `$`;
/// matching takes time linear in the path.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

impl Expression {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The compiled expression.
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.as_str() == other.as_str()
    }
}

/// A host a route takes: a name, `*.` and a name, or an IP address.
pub(crate) fn host(text: &str) -> Result<HostPattern, Problem> {
    let malformed = |message: &str| {
        Problem::expected(message, "expected a host such as \"example.com\" or \"*.example.com\"")
    };
    if text == "*" || text == "_" {
        return Err(malformed("this is no host").help("for every host leave `host` out"));
    }
    if let Some(inside) = text.strip_prefix('[') {
        let address =
            inside.strip_suffix(']').filter(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok());
        return match address {
            Some(_) => Ok(HostPattern::Exact(text.to_ascii_lowercase().into())),
            None => {
                Err(malformed("this is no host")
                    .help("an IPv6 address, in brackets, without a port"))
            }
        };
    }
    let (wildcard, name) = match text.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, text),
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if !name.is_ascii() {
        return Err(malformed("a host is written in ASCII")
            .help("write an international name in its encoded form, which begins with xn--"));
    }
    if let Some((before, port)) = name.split_once(':') {
        let help = if before.is_empty() || port.contains(':') {
            "write an IPv6 address in brackets".to_string()
        } else {
            format!("hosts are compared without their port: \"{before}\"")
        };
        return Err(malformed("this is no host").help(help));
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if name.len() > MAX_HOST_BYTES || !name.split('.').all(label) {
        let problem = malformed("this is no host");
        return Err(if text.contains('*') {
            problem.help("`*.` at the beginning is the only wildcard")
        } else if text.starts_with('~') {
            problem.help("hosts are names or begin with `*.`; there are no expressions")
        } else {
            problem
        });
    }
    Ok(if wildcard {
        HostPattern::Suffix(format!(".{name}").into())
    } else {
        HostPattern::Exact(name.into())
    })
}

/// How a literal path is going to be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    Exact,
    Prefix,
}

/// A path as routes compare it: normalised, without parameters. One that no such path can equal, or
/// begin with, is refused.
pub(crate) fn compared(text: &str, extent: Extent, rules: PathRules) -> Result<Box<str>, Problem> {
    let text = literal(text, extent, rules)?;
    let mut bare = Vec::new();
    if path::strip_parameters(text.as_bytes(), rules, &mut bare) {
        let bare = String::from_utf8_lossy(&bare).into_owned();
        return Err(Problem::new("no path looks like this when routes are matched").help(format!(
            "parameters (`;…`) are removed before paths are compared; write \"{bare}\""
        )));
    }
    Ok(text)
}

/// A path in normal form.
pub(crate) fn literal(text: &str, extent: Extent, rules: PathRules) -> Result<Box<str>, Problem> {
    if !text.starts_with('/') {
        let problem = Problem::expected("this is no path", "expected a path that begins with `/`");
        if let Some(help) = modifier(text) {
            return Err(problem.help(help));
        }
        let help = if text.starts_with(['^', '~', '(']) || text.contains(".*") {
            format!("for a regular expression: path = {{ regex = '{text}' }}")
        } else {
            format!("write \"/{text}\"")
        };
        return Err(problem.help(help));
    }
    if text.len() > 1 && text.ends_with('*') {
        let help = format!("a prefix needs no `*`: \"{}\"", text.trim_end_matches('*'));
        return Err(Problem::new("`*` is no wildcard here")
            .at(text.len() - 1..text.len())
            .help(help));
    }
    if let Some(problem) = text.char_indices().find_map(|(at, character)| illegal(character, at)) {
        return Err(problem);
    }
    // A prefix may end in what only its continuation makes normal: `/.` is how `/.env` begins.
    let probe = match extent {
        Extent::Exact => text.to_string(),
        Extent::Prefix => format!("{text}x"),
    };
    let mut normal = Vec::new();
    match path::normalise(probe.as_bytes(), rules, &mut normal) {
        Err(Fault::PathEncodedSlash) if text.to_ascii_uppercase().contains("%2F") => {
            Err(Problem::expected("no request can have this path", "").help(
                "requests with %2F are refused; `encoded_slashes = \"keep\"` of the \
                 listener lets them in (see docs/http-strictness.md)",
            ))
        }
        Err(fault) => Err(Problem::expected("no request can have this path", "")
            .help(format!("such a request is refused: {}", fault.message()))),
        Ok(true) if normal != probe.as_bytes() => {
            if extent == Extent::Prefix {
                normal.pop();
            }
            let normal = String::from_utf8_lossy(&normal).into_owned();
            Err(Problem::new("no path looks like this after normalisation")
                .help(format!("paths are normalised before they are compared; write \"{normal}\"")))
        }
        Ok(_) => Ok(text.into()),
    }
}

/// What a location with a modifier of nginx is here.
fn modifier(text: &str) -> Option<String> {
    let (modifier, rest) = text.split_once(' ')?;
    let rest = rest.trim();
    match modifier {
        "=" => Some(format!("for this path alone: path = {{ exact = \"{rest}\" }}")),
        "~" => Some(format!("for a regular expression: path = {{ regex = '{rest}' }}")),
        "~*" => Some(format!("for an expression in any case: path = {{ regex = '(?i){rest}' }}")),
        "^~" => Some(format!(
            "routes are tried in the order of the file: write \"{rest}\", before routes with expressions"
        )),
        _ => None,
    }
}

/// What is wrong with a character at a place of a path, if something is.
pub(crate) fn illegal(character: char, at: usize) -> Option<Problem> {
    let is_illegal = !character.is_ascii_graphic()
        || matches!(character, '?' | '#' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    if !is_illegal {
        return None;
    }
    let problem = Problem::new(match character {
        '?' => "a path has no query",
        '#' => "a path has no fragment",
        _ => "this character cannot stand in a path",
    });
    let mut bytes = [0; 4];
    let encoded: String =
        character.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect();
    let help = match character {
        '?' | '#' => "routes are matched by the path alone".to_string(),
        _ => format!("write it as {encoded}"),
    };
    Some(problem.help(help).at(at..at + character.len_utf8()))
}

/// A regular expression, compiled.
pub(crate) fn regex(text: &str) -> Result<Expression, Problem> {
    // Case and Unicode as the expression says; the limit bounds memory, matching is linear anyway.
    match RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build() {
        Ok(regex) => Ok(Expression(regex)),
        Err(regex::Error::CompiledTooBig(limit)) => Err(Problem::new(format!(
            "this expression takes more than {limit} bytes when compiled"
        ))),
        Err(error) => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let reason = last.strip_prefix("error: ").unwrap_or(last);
            Err(Problem::expected(format!("this is no regular expression: {reason}"), "").help(
                "expressions are those of the Rust crate regex: no look-around, no back references",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use subak_message::{EncodedSlashes, PathRules};

    use super::{Extent, HostPattern, PathPattern, compared, host, literal, regex};

    #[test]
    fn hosts_match_exactly_or_by_labels() {
        let exact = host("Example.COM.").unwrap();
        assert_eq!(exact, HostPattern::Exact("example.com".into()));
        assert!(exact.matches(b"example.com") && !exact.matches(b"a.example.com"));
        let suffix = host("*.example.com").unwrap();
        assert!(suffix.matches(b"a.example.com") && suffix.matches(b"b.a.example.com"));
        assert!(!suffix.matches(b"example.com") && !suffix.matches(b".example.com"));
        assert!(!suffix.matches(b"badexample.com"));
        assert!(host("[::1]").is_ok() && host("10.0.0.1").is_ok() && host("a_b").is_ok());
        for text in [
            "", "*", "*.", "a.*", "*a.b", "a..b", ".a", "a:80", "::1", "[::1]:80", "ü.de", "a b",
            "~a", "a/b",
        ] {
            assert!(host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_that_cannot_match_are_refused() {
        let rules = PathRules::DEFAULT;
        let keep = PathRules { encoded_slashes: EncodedSlashes::Keep, ..rules };
        for (text, help) in [
            ("= /a", "{ exact = \"/a\" }"),
            ("~ \\.php$", "{ regex = '\\.php$' }"),
            ("~* \\.php$", "{ regex = '(?i)\\.php$' }"),
            ("^~ /a/", "write \"/a/\""),
        ] {
            let found = compared(text, Extent::Prefix, rules).expect_err(text).help;
            assert!(found.as_ref().is_some_and(|found| found.contains(help)), "{text}: {found:?}");
        }
        for text in ["/", "/a", "/a/b.c", "/:x@", "/a/.hidden"] {
            assert!(compared(text, Extent::Exact, rules).is_ok(), "{text}");
        }
        assert!(compared("/a%2Fb", Extent::Exact, keep).is_ok());
        for (text, help) in [("/a%2Fb", "encoded_slashes"), ("/a;v=1", "\"/a\"")] {
            let problem = compared(text, Extent::Exact, rules).expect_err(text);
            assert!(problem.help.is_some_and(|text| text.contains(help)), "{text}");
        }
        assert!(literal("/a;v=1", Extent::Prefix, rules).is_ok(), "what a rewrite makes");
        assert!(compared("/.", Extent::Prefix, rules).is_ok());
        assert!(compared("/.", Extent::Exact, rules).is_err());
        let separate = PathRules { merge_slashes: false, ..rules };
        assert!(compared("//", Extent::Prefix, separate).is_ok());
        for text in [
            "", "a", "/a//b", "/a/./b", "/a/../b", "/../a", "/%41", "/%2f", "/%", "/%zz", "/a?b",
            "/a#b", "/ü", "/a b", "/a*", "/\\", "^/a",
        ] {
            assert!(literal(text, Extent::Exact, rules).is_err(), "{text}");
            assert!(compared(text, Extent::Prefix, rules).is_err(), "{text}");
        }
    }

    #[test]
    fn expressions_are_found_anywhere_unless_anchored() {
        let pattern = PathPattern::Regex(regex(r"\.(css|js)$").unwrap());
        assert!(pattern.matches(b"/a.css") && !pattern.matches(b"/a.css/b"));
        for text in ["(", "a{100000}{100000}", "(?=a)", r"\1"] {
            assert!(regex(text).is_err(), "{text}");
        }
    }
}
