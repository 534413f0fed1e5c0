//! Text with variables, for redirects: `https://{host}{path_and_query}`.

use std::fmt;

use crate::fixed_text::{self, Place};
use crate::problem::Problem;
use crate::suggest::nearest;

/// Pieces that are put together for each request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// At least one.
    pub parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// As it stands.
    Text(Box<str>),
    /// Taken from the request.
    Variable(Variable),
}

/// What a template can take from a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// `http` or `https`: how the client came.
    Scheme,
    /// The host the client asked for, without a port.
    Host,
    /// The path as the client wrote it.
    Path,
    /// The query without its `?`; empty when there is none.
    Query,
    /// The path and, when there is one, `?` and the query, as the client wrote them.
    PathAndQuery,
}

const VARIABLES: &[(&str, Variable)] = &[
    ("scheme", Variable::Scheme),
    ("host", Variable::Host),
    ("path", Variable::Path),
    ("query", Variable::Query),
    ("path_and_query", Variable::PathAndQuery),
];

/// As it is written.
impl fmt::Display for Template {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => out.write_str(text),
            Part::Variable(variable) => {
                let name = VARIABLES.iter().find(|(_, known)| known == variable);
                write!(out, "{{{}}}", name.map_or("", |(name, _)| name))
            }
        })
    }
}

/// Where a redirect leads: an absolute URL or a path, with variables in braces.
pub(crate) fn location(text: &str) -> Result<Template, Problem> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(inside) = rest.strip_prefix('{') {
            let Some((name, _)) = inside.split_once('}') else {
                return Err(Problem::expected("this brace is not closed", "expected `}`")
                    .at(at..text.len()));
            };
            let end = at + name.len() + 2;
            let variable = VARIABLES.iter().find(|(known, _)| *known == name);
            let (_, variable) = variable.ok_or_else(|| unknown_variable(name).at(at..end))?;
            parts.push(Part::Variable(*variable));
            at = end;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            check_text(&rest[..end], at)?;
            let shifted = |problem: Problem| problem.shifted(at, end);
            let fixed = fixed_text::fixed(&rest[..end], Place::Path).map_err(shifted)?;
            parts.push(Part::Text(fixed.into()));
            at += end;
        }
    }
    check_target(text)?;
    Ok(Template { parts })
}

/// Whether it is fixed, or the client's own host, where the location leads. A client that chooses
/// its path or query must not choose the site it makes others go to.
fn check_target(text: &str) -> Result<(), Problem> {
    let scheme =
        ["http://", "https://", "{scheme}://"].into_iter().find(|scheme| text.starts_with(scheme));
    let Some(scheme) = scheme else {
        if text.starts_with("//") || text.starts_with("/{path") {
            return Err(Problem::expected("this would lead to another site", "expected one slash")
                .help("`{path}` and `{path_and_query}` begin with a slash themselves; a second one before it makes the path a host"));
        }
        if text.starts_with("/{query}") {
            let expected = "expected text between the slash and `{query}`";
            return Err(Problem::expected("this lets the client name another site", expected)
                .help("a query that begins with a slash makes `//host` of it; write a name before it, for example \"/search?{query}\"")
                .at(0.."/{query}".len()));
        }
        if !text.starts_with('/') {
            let expected = "expected an absolute URL or a path from `/`";
            return Err(Problem::expected("this leads nowhere", expected)
                .help("for example \"https://{host}{path_and_query}\""));
        }
        return Ok(());
    };
    let rest = &text[scheme.len()..];
    let end = ["/", "?", "#", "{path}", "{path_and_query}"]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min();
    let authority = &rest[..end.unwrap_or(rest.len())];
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if authority.is_empty() || !authority.replace("{host}", "h").bytes().all(allowed) {
        let place = scheme.len()..scheme.len() + authority.len();
        return Err(Problem::expected(
            "this is no host",
            "expected a host, `{host}`, and perhaps a port",
        )
        .at(place));
    }
    Ok(())
}

fn unknown_variable(name: &str) -> Problem {
    let names: Vec<String> = VARIABLES.iter().map(|(known, _)| format!("{{{known}}}")).collect();
    let near = nearest(name, VARIABLES.iter().map(|(known, _)| *known));
    Problem::expected("this variable is not known", format!("expected one of {}", names.join(", ")))
        .maybe_help(near.map(|near| format!("did you mean {{{near}}}?")))
}

fn check_text(text: &str, offset: usize) -> Result<(), Problem> {
    let allowed = |character: char| {
        character.is_ascii_graphic()
            && !matches!(character, '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '}')
    };
    let Some((at, character)) = text.char_indices().find(|(_, character)| !allowed(*character))
    else {
        return Ok(());
    };
    let mut bytes = [0; 4];
    let encoded: String =
        character.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect();
    Err(Problem::expected("this character cannot stand in a URL", "")
        .help(format!("write it as {encoded}"))
        .at(offset + at..offset + at + character.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::{Part, Variable, location};

    #[test]
    fn splits_text_and_variables() {
        let template = location("https://{host}{path_and_query}#x").unwrap();
        assert_eq!(
            template.parts,
            [
                Part::Text("https://".into()),
                Part::Variable(Variable::Host),
                Part::Variable(Variable::PathAndQuery),
                Part::Text("#x".into()),
            ]
        );
        assert!(location("/new{path}?{query}").is_ok());
        assert!(location("{scheme}://www.{host}/").is_ok());
        assert!(location("https://[::1]:8443{path}").is_ok());
    }

    #[test]
    fn a_client_cannot_choose_the_site() {
        for text in [
            "{path}",
            "{path_and_query}",
            "/{path}",
            "/{path_and_query}",
            "/{query}",
            "/{query}/x",
            "//example.com/",
            "https://{host}{query}",
            "https://{host}:{query}",
            "{scheme}://{query}{path}",
            "https://example.com{query}",
            "https://example.com:{query}/",
            "https://{query}/",
            "https://user@example.com/",
            "https://{scheme}/",
            "https:///x",
            "https://",
        ] {
            assert!(location(text).is_err(), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_location() {
        for text in [
            "",
            "www",
            "{host}/",
            "ftp://x/",
            "/{",
            "/}",
            "/{nope}",
            "/new/$2",
            "https://$host/",
            "/{}",
            "/a b",
            "/ü",
            "/\r\nX: y",
        ] {
            let problem = location(text).expect_err(text);
            if let Some(at) = problem.at {
                assert!(text.get(at.clone()).is_some(), "{text} {at:?}");
            }
        }
    }
}
