//! Text that goes out as it stands: header values, the paths of redirects and rewrites.
//!
//! Text that looks like a variable (`{client}`, `$remote_addr`, `%[src]`, in paths also `$1`) is an
//! error, because nothing would replace it. Doubled marks stand for themselves: `{{name}}` is `{name}`,
//! `$$name` is `$name`, `%%[` is `%[`. Any other brace, dollar or percent sign is ordinary text: `$5`,
//! `{"a":{}}`, `100%`.

use std::borrow::Cow;

use crate::problem::Problem;

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A header value. `$5` is money.
    Header,
    /// A path or URL. `$1` is meant as a group of an expression.
    Path,
}

/// The text with doubled marks made single.
///
/// # Errors
/// A part that looks like a variable.
pub(crate) fn fixed(text: &str, place: Place) -> Result<Cow<'_, str>, Problem> {
    if !text.contains(['{', '$', '%']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(mark) = text[at..].find(['{', '$', '%']).map(|found| at + found) {
        out.push_str(&text[at..mark]);
        let rest = &text[mark..];
        if let Some(doubled) = doubled(rest, place) {
            out.push_str(doubled.single);
            at = mark + doubled.bytes;
        } else if let Some(length) = variable(rest, place) {
            return Err(problem(&rest[..length], place).at(mark..mark + length));
        } else {
            out.push_str(&rest[..1]);
            at = mark + 1;
        }
    }
    out.push_str(&text[at..]);
    Ok(Cow::Owned(out))
}

/// A variable whose marks are doubled.
struct Doubled<'a> {
    single: &'a str,
    bytes: usize,
}

fn doubled(text: &str, place: Place) -> Option<Doubled<'_>> {
    if let Some(inside) = text.strip_prefix("{{") {
        let length = variable(&text[1..], place)?;
        let closes = inside[length - 1..].starts_with('}');
        return closes.then_some(Doubled { single: &text[1..1 + length], bytes: length + 2 });
    }
    let single = text.strip_prefix("$$").or_else(|| text.strip_prefix("%%")).map(|_| &text[1..])?;
    let length = variable(single, place)?;
    Some(Doubled { single: &single[..length], bytes: length + 1 })
}

/// Bytes of the variable that a text begins with, if it begins with one.
fn variable(text: &str, place: Place) -> Option<usize> {
    let name = |text: &str| -> usize {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = text.bytes().take_while(|byte| is_part(*byte)).count();
        if text.starts_with(|first: char| first.is_ascii_digit()) { 0 } else { length }
    };
    if let Some(inside) = text.strip_prefix('{') {
        // `{header:X-Y}` and `{client.ip}` are meant as variables too.
        let length = name(inside);
        let more = inside[length..]
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(byte));
        let end = length + more.count();
        return (length > 0 && inside[end..].starts_with('}')).then_some(end + 2);
    }
    if let Some(inside) = text.strip_prefix('$') {
        let braced = inside.strip_prefix('{').map(|inside| (inside, name(inside)));
        if let Some((inside, length)) = braced {
            return (length > 0 && inside[length..].starts_with('}')).then_some(length + 3);
        }
        let is_group = place == Place::Path && inside.starts_with(|c: char| c.is_ascii_digit());
        let length = if is_group { 1 } else { name(inside) };
        return (length > 0).then_some(length + 1);
    }
    let inside = text.strip_prefix("%[")?;
    let end = inside.find(']')?;
    (name(inside) > 0).then_some(end + 3)
}

/// Words of other programs and what does the same here.
const REMEDIES: &[(&[&str], &str)] = &[
    (
        &[
            "remote_addr",
            "client",
            "client_ip",
            "src",
            "proxy_add_x_forwarded_for",
            "realip_remote_addr",
        ],
        "endpoints hear of the client by X-Forwarded-For, which Subak adds itself; `forwarded_headers` of the listener says which fields",
    ),
    (
        &["scheme", "https", "ssl_fc"],
        "endpoints hear of it by X-Forwarded-Proto, which Subak adds itself",
    ),
    (
        &["host", "http_host", "server_name"],
        "endpoints hear of it by Host and X-Forwarded-Host, which Subak writes itself; see `host` of the pool",
    ),
    (
        &["request_id", "req_id", "unique_id", "id"],
        "`decision_header` of the listener gives each answer an id that the access log has too",
    ),
];

fn problem(variable: &str, place: Place) -> Problem {
    let escaped = match variable.as_bytes()[0] {
        b'{' => format!("{{{variable}}}"),
        b'$' if variable.starts_with("${") => format!("${variable}"),
        mark => format!("{}{variable}", mark as char),
    };
    let name = variable.trim_matches(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_group = name.bytes().all(|byte| byte.is_ascii_digit());
    let known = REMEDIES.iter().find(|(names, _)| names.contains(&name)).map(|(_, help)| *help);
    let (expected, help) = match place {
        Place::Path if is_group => (
            "expected a path without groups",
            "groups go with `regex`: rewrite = { regex = '^/old/(.*)$', to = \"/new/$1\" }; a redirect has {path}, {query} and {path_and_query}",
        ),
        Place::Path => (
            "expected fixed text",
            "a redirect has {scheme}, {host}, {path}, {query} and {path_and_query}; a rewrite with `regex` has $1 to $9",
        ),
        Place::Header => (
            "expected fixed text",
            known.unwrap_or("header values have no variables in this version"),
        ),
    };
    Problem::expected(format!("nothing replaces `{variable}` here"), expected)
        .help(format!("{help}; for these characters themselves write {escaped}"))
}

#[cfg(test)]
mod tests {
    use super::{Place, fixed};

    #[test]
    fn text_goes_out_as_it_stands() {
        for text in [
            "",
            "$5",
            "US$ 5",
            "costs 5$",
            "$$",
            "100%",
            "%20",
            "a{b",
            "{}",
            "{ }",
            "{\"group\":\"default\",\"endpoints\":[{\"url\":\"https://a/\"}]}",
            "{\"a\":{\"b\":1}}",
            "max-age=31536000; includeSubDomains",
            "default-src 'self'",
            "{1}",
            "%[",
        ] {
            assert_eq!(fixed(text, Place::Header).as_deref(), Ok(text));
        }
        for (text, out) in [
            ("{{client}}", "{client}"),
            ("a {{host}} b {{x.y:z-1}}", "a {host} b {x.y:z-1}"),
            ("{{{x}}}", "{{x}}"),
            ("$$remote_addr", "$remote_addr"),
            ("$${host}", "${host}"),
            ("%%[src]", "%[src]"),
            ("$$$x", "$$x"),
        ] {
            assert_eq!(fixed(text, Place::Header).as_deref(), Ok(out), "{text}");
        }
        assert_eq!(fixed("/a/$$1", Place::Path).as_deref(), Ok("/a/$1"));
    }

    #[test]
    fn variables_are_refused_where_nothing_replaces_them() {
        for (text, variable) in [
            ("{client}", "{client}"),
            ("a {client.ip}", "{client.ip}"),
            ("{header:X-Y}", "{header:X-Y}"),
            ("$remote_addr", "$remote_addr"),
            ("${remote_addr}", "${remote_addr}"),
            ("for=$http_x;", "$http_x"),
            ("%[src]", "%[src]"),
            ("%[req.hdr(Host)]", "%[req.hdr(Host)]"),
            ("{{client}", "{client}"),
        ] {
            let problem = fixed(text, Place::Header).expect_err(text);
            assert_eq!(problem.at.map(|at| &text[at]), Some(variable), "{text}");
            assert!(problem.help.is_some_and(|help| help.contains("write ")), "{text}");
        }
        for text in ["/a/$2", "/$host/", "/{x}"] {
            assert!(fixed(text, Place::Path).is_err(), "{text}");
        }
    }
}
