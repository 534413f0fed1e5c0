//! Another path for the endpoint: a prefix taken off or replaced, or an expression replaced.
//!
//! Made from the normalised path, of characters that a path may have; what comes out is normalised
//! again by whoever forwards it, because pieces of a safe path need not be safe side by side.

use subak_message::{EncodedSlashes, PathRules};

use crate::fixed_text::{self, Place};
use crate::pattern::{self, Expression, Extent};
use crate::problem::Problem;

/// What becomes of a path.
#[derive(Clone, PartialEq, Debug)]
pub enum Rewrite {
    /// This beginning is taken off, in whole segments.
    Strip(Box<str>),
    /// This beginning gives way to another one, in whole segments.
    Prefix {
        /// The beginning.
        prefix: Box<str>,
        /// What takes its place.
        to: Box<str>,
    },
    /// The first match gives way.
    Regex {
        /// What is looked for.
        expression: Expression,
        /// What takes its place.
        to: Replacement,
    },
}

/// Text with groups of an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacement(Vec<Piece>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(Box<str>),
    Group(usize),
}

impl Rewrite {
    /// Appends the path that `path` becomes; false, and nothing, when it does not fit. Begins with a
    /// slash; may have to be normalised.
    pub fn apply(&self, path: &[u8], out: &mut Vec<u8>) -> bool {
        match self {
            Rewrite::Strip(prefix) => {
                let Some(rest) = after(path, prefix) else { return false };
                put_rest(rest, out);
            }
            Rewrite::Prefix { prefix, to } => {
                let Some(rest) = after(path, prefix) else { return false };
                let rest = rest.strip_prefix(b"/").unwrap_or(rest);
                out.extend_from_slice(to.as_bytes());
                if !rest.is_empty() && !to.ends_with('/') {
                    out.push(b'/');
                }
                out.extend_from_slice(rest);
                // What ended in a slash goes on to.
                if rest.is_empty() && path.ends_with(b"/") && !to.ends_with('/') {
                    out.push(b'/');
                }
            }
            Rewrite::Regex { expression, to } => {
                let Some(captures) = expression.regex().captures(path) else { return false };
                let whole = captures.get(0).map_or(0..0, |found| found.range());
                let start = out.len();
                out.extend_from_slice(&path[..whole.start]);
                for piece in &to.0 {
                    match piece {
                        Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                        Piece::Group(group) => {
                            let found = captures.get(*group);
                            out.extend_from_slice(found.map_or(&b""[..], |found| found.as_bytes()));
                        }
                    }
                }
                out.extend_from_slice(&path[whole.end..]);
                if out.get(start) != Some(&b'/') {
                    out.insert(start, b'/');
                }
            }
        }
        true
    }

    /// What is taken off, where something is.
    pub fn stripped(&self) -> Option<&str> {
        match self {
            Rewrite::Strip(prefix) => Some(prefix.trim_end_matches('/')),
            Rewrite::Prefix { .. } | Rewrite::Regex { .. } => None,
        }
    }
}

/// What follows a prefix that ends where a segment does.
fn after<'a>(path: &'a [u8], prefix: &str) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(prefix.as_bytes())?;
    (prefix.ends_with('/') || rest.is_empty() || rest[0] == b'/').then_some(rest)
}

fn put_rest(rest: &[u8], out: &mut Vec<u8>) {
    if rest.first() != Some(&b'/') {
        out.push(b'/');
    }
    out.extend_from_slice(rest);
}

/// What takes the place of a match: characters of a path, `$1` to `$9`, `$0`, and `$$` for `$`.
pub(crate) fn replacement(text: &str, expression: &Expression) -> Result<Replacement, Problem> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character != '$' {
            if let Some(problem) = pattern::illegal(character, at) {
                return Err(problem);
            }
            literal.push(character);
            continue;
        }
        match characters.next() {
            Some((_, '$')) => literal.push('$'),
            Some((_, digit @ '0'..='9')) => {
                let group = digit as usize - '0' as usize;
                if group >= expression.regex().captures_len() {
                    let expected = format!(
                        "expected $0 to ${}, the groups of the expression",
                        expression.regex().captures_len() - 1
                    );
                    return Err(
                        Problem::expected("there is no such group", expected).at(at..at + 2)
                    );
                }
                pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
                pieces.push(Piece::Group(group));
            }
            _ => {
                let problem =
                    Problem::expected("`$` stands alone", "expected $0 to $9, or $$ for $");
                return Err(problem.at(at..at + 1));
            }
        }
    }
    pieces.push(Piece::Text(literal.into()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    Ok(Replacement(pieces))
}

/// The beginning of a path that gives way.
pub(crate) fn prefix(text: &str, rules: PathRules) -> Result<Box<str>, Problem> {
    pattern::compared(text, Extent::Prefix, rules)
}

/// The path that takes its place. Whatever the listener takes from clients, it may have `%2F`.
pub(crate) fn prefix_to(text: &str, rules: PathRules) -> Result<Box<str>, Problem> {
    let rules = PathRules { encoded_slashes: EncodedSlashes::Keep, ..rules };
    pattern::literal(&fixed_text::fixed(text, Place::Path)?, Extent::Prefix, rules)
}

#[cfg(test)]
mod tests {
    use super::{Rewrite, replacement};
    use crate::pattern::regex;

    fn become_of(rewrite: &Rewrite, path: &str) -> Option<String> {
        let mut out = b"x".to_vec();
        let fits = rewrite.apply(path.as_bytes(), &mut out);
        assert!(out.starts_with(b"x") && (fits || out.len() == 1));
        fits.then(|| String::from_utf8(out.split_off(1)).unwrap())
    }

    #[test]
    fn prefixes_go_in_whole_segments() {
        let strip = |prefix: &str| Rewrite::Strip(prefix.into());
        let replace =
            |prefix: &str, to: &str| Rewrite::Prefix { prefix: prefix.into(), to: to.into() };
        for (rewrite, path, expected) in [
            (strip("/v2"), "/v2/x", Some("/x")),
            (strip("/v2"), "/v2", Some("/")),
            (strip("/v2"), "/v2/", Some("/")),
            (strip("/v2"), "/v20", None),
            (strip("/v2/"), "/v2/x/", Some("/x/")),
            (strip("/v2/"), "/v2", None),
            (strip("/"), "/x", Some("/x")),
            (replace("/old", "/new"), "/old/x", Some("/new/x")),
            (replace("/old", "/new"), "/old", Some("/new")),
            (replace("/old", "/new"), "/old/", Some("/new/")),
            (replace("/old/", "/new"), "/old/x", Some("/new/x")),
            (replace("/old", "/"), "/old/x", Some("/x")),
            (replace("/old", "/"), "/old", Some("/")),
            (replace("/old", "/new/"), "/old/x", Some("/new/x")),
            (replace("/old", "/new"), "/older", None),
            (replace("/", "/new"), "/x", Some("/new/x")),
        ] {
            assert_eq!(become_of(&rewrite, path).as_deref(), expected, "{rewrite:?} {path}");
        }
    }

    #[test]
    fn groups_are_put_in_and_checked() {
        let rewrite = |expression: &str, to: &str| {
            let expression = regex(expression).unwrap();
            replacement(to, &expression).map(|to| Rewrite::Regex { expression, to })
        };
        for (expression, to, path, expected) in [
            ("^/old/(.*)$", "/new/$1", "/old/a/b", Some("/new/a/b")),
            ("^/old/(.*)$", "/new/$1", "/x", None),
            ("b", "c$0$$", "/abab", Some("/acb$ab")),
            ("^/(a)|(b)", "/$2$1", "/a", Some("/a")),
            ("^/x", "", "/xy", Some("/y")),
        ] {
            let rewrite = rewrite(expression, to).unwrap();
            assert_eq!(become_of(&rewrite, path).as_deref(), expected, "{expression} {to} {path}");
        }
        for to in ["/$2", "/$", "/$x", "/a?b", "/a#b", "/a\r\nX: y", "/a b", "/\u{fc}", "/\\"] {
            assert!(rewrite("^/(a)", to).is_err(), "{to}");
        }
    }
}
