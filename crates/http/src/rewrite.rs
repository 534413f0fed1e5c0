//! The path that the endpoint of a rewriting route sees.
//!
//! A rewrite sees the path in normal form; where it does not fit that, the path without parameters, so
//! that `/app;x/y` does not come past a rewrite of `/app`. The result is normalised again with slashes
//! merged, so that pieces put side by side cannot make a dot segment, a broken escape or a second host.
//! A result that is not a path is refused with 400. The query stays as the client wrote it.

use subak_config::Rewrite;
use subak_message::{EncodedSlashes, HeadError, PathRules, RequestHead, path};

use crate::failure::Failure;

/// Rules for the result: an encoded slash in it is the configuration's, or the listener has let it in.
const RULES: PathRules = PathRules { merge_slashes: true, encoded_slashes: EncodedSlashes::Keep };

/// Writes the target that the endpoint sees to `out`, which is empty; nothing when the path does not
/// fit and goes on as it would without a rewrite.
///
/// # Errors
/// [`Failure::BadHead`], when the path that comes out is none.
pub(crate) fn target(
    rewrite: &Rewrite,
    head: &RequestHead,
    out: &mut Vec<u8>,
) -> Result<bool, Failure> {
    let (normal, compared) = (head.normal_path(), head.compared_path());
    if !normal.starts_with(b"/") {
        return Ok(false);
    }
    if !rewrite.apply(normal, out) && (compared == normal || !rewrite.apply(compared, out)) {
        return Ok(false);
    }
    let mut normal = Vec::new();
    match path::normalise(out, RULES, &mut normal) {
        Ok(false) => {}
        Ok(true) => *out = normal,
        Err(fault) => {
            out.clear();
            return Err(Failure::BadHead(HeadError { fault, offset: 0 }));
        }
    }
    if let Some(query) = head.query() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use subak_config::Rewrite;
    use subak_message::h1::parse_request;
    use subak_message::{HeadLimits, RequestHead, Scheme, path};

    use super::{RULES, target};

    /// The rewrite that a configuration has.
    fn rewrite(text: &str) -> Option<Rewrite> {
        let text = format!(
            "[listener.web]\nbind = \"0.0.0.0:80\"\n[[listener.web.route]]\npool = \"app\"\n{text}\n\
             [pool.app]\nendpoints = [\"10.0.0.2:80\"]\n"
        );
        let config = subak_config::parse(&text, Path::new("subak.toml")).config?;
        config.listeners[0].routes[0].rewrite.clone()
    }

    fn rewrites() -> impl Strategy<Value = String> {
        let path = "(/[a-c.%$0-9]{0,4}){1,3}";
        let expression = prop::sample::select(
            &["^/(.)(.*)$", "(..)/(.)", "^/a", "%(2.)?()", "/(.*)/(.*)$", "([^/]*)/?(.?)"][..],
        );
        prop_oneof![
            path.prop_map(|prefix| format!("strip_prefix = {prefix:?}")),
            (path, path).prop_map(|(prefix, to)| format!(
                "rewrite = {{ prefix = {prefix:?}, to = {to:?} }}"
            )),
            (expression, "[/a.%2]{0,3}(\\$[012][/.%]?){0,3}[/a.2F]{0,2}")
                .prop_map(|(regex, to)| format!("rewrite = {{ regex = '{regex}', to = {to:?} }}")),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn whatever_a_rewrite_makes_is_a_path_in_normal_form(
            text in rewrites(),
            asked in "/([a-c2.%/;F]|;/|;x|%2[ef5F]|%0[adAD]|%3[fF]|\\.\\.?/){0,12}",
            query in proptest::option::of("[a-c=&?/.]{0,6}"),
        ) {
            let query = query.map_or_else(String::new, |query| format!("?{query}"));
            let request = format!("GET {asked}{query} HTTP/1.1\r\nHost: h\r\n\r\n");
            let limits = HeadLimits { max_bytes: 4096, max_fields: 64, path: RULES };
            let mut head = RequestHead::new(Scheme::Http);
            let (Some(rewrite), Ok(_)) =
                (rewrite(&text), parse_request(request.as_bytes(), &limits, &mut head))
            else {
                return Ok(());
            };
            let mut out = Vec::new();
            match target(&rewrite, &head, &mut out) {
                Ok(true) => {
                    let split = out.iter().position(|byte| *byte == b'?').unwrap_or(out.len());
                    let (path, rest) = out.split_at(split);
                    prop_assert_eq!(rest, query.as_bytes(), "the query stays");
                    prop_assert!(path.starts_with(b"/") && !path.starts_with(b"//"));
                    prop_assert!(path.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#'));
                    let mut again = Vec::new();
                    let normal = path::normalise(path, RULES, &mut again);
                    // What has escapes may be copied, to the same.
                    prop_assert!(normal == Ok(false) || again == path, "{:?}", out.escape_ascii());
                }
                Ok(false) | Err(_) => prop_assert!(out.is_empty()),
            }
        }
    }
}
