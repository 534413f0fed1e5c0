//! `stick` of a pool: the cookie or the table by which clients come back.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Reader, View, convert, secret};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::headers;
use crate::model::{SameSite, SecureCookie, Stick, StickCookie, StickTable};
use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::vocabulary::STICK;

const COOKIE_ONLY: &[&str] = &["path", "secure", "http_only", "same_site", "keys_file"];
const TABLE_ONLY: &[&str] = &["expire", "entries"];

/// Bytes of a cookie's name. It goes with every request.
const MAX_NAME_BYTES: usize = 128;
/// Bytes of a cookie's path.
const MAX_PATH_BYTES: usize = 1024;

pub(super) fn read(reader: &mut Reader<'_>, view: &View<'_>) -> Option<Stick> {
    let node = view.node("stick")?;
    let view = View::of(node, &STICK);
    match (view.node("cookie"), view.node("table")) {
        (Some(name), _) => {
            reader.only_with(&view, TABLE_ONLY, "table");
            cookie(reader, &view, name).map(Stick::Cookie)
        }
        (None, Some(_)) => {
            reader.only_with(&view, COOKIE_ONLY, "cookie");
            let entries = view.number("entries").and_then(convert);
            let default = NonZeroUsize::MIN.saturating_add(defaults::STICK_ENTRIES - 1);
            Some(Stick::Table(StickTable {
                expire: view.duration("expire", defaults::STICK_EXPIRY),
                entries: entries.unwrap_or(default),
            }))
        }
        (None, None) => None,
    }
}

fn cookie(reader: &mut Reader<'_>, view: &View<'_>, name: &Node) -> Option<StickCookie> {
    let text = reader.text(name, cookie_name);
    let path = view.node("path").map(|node| reader.text(node, cookie_path));
    let secure = match view.node("secure").map(|node| &node.value) {
        Some(Value::Boolean(true)) => SecureCookie::Always,
        Some(Value::Boolean(false)) => SecureCookie::Never,
        _ => SecureCookie::Auto,
    };
    let same_site = match view.string("same_site") {
        Some("strict") => SameSite::Strict,
        Some("none") => SameSite::None,
        _ => SameSite::Lax,
    };
    let keys_file = view.node("keys_file");
    let keys = keys_file.map(|node| secret::session_keys(reader, node));
    let cookie = StickCookie {
        name: text?,
        path: path.unwrap_or_else(|| Some(Arc::from("/")))?,
        secure,
        http_only: view.boolean("http_only", true),
        same_site,
        keys: keys.flatten(),
    };
    browsers_take(reader, view, name, &cookie);
    Some(cookie)
}

/// What browsers refuse: SameSite=None and the prefixes of names without what they ask for.
fn browsers_take(reader: &mut Reader<'_>, view: &View<'_>, name: &Node, cookie: &StickCookie) {
    if let (Some(node), Some(secure), SameSite::None, SecureCookie::Never) =
        (view.node("same_site"), view.node("secure"), cookie.same_site, cookie.secure)
    {
        let diagnostic = Diagnostic::error(node.span, "browsers drop this cookie");
        let diagnostic = diagnostic.label("\"none\" takes Secure");
        reader.push(diagnostic.related(secure.span, "it is not").help("secure = true"));
    }
    let prefix = |prefix: &str| {
        cookie.name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let (host, secure) = (prefix("__Host-"), prefix("__Secure-"));
    let lacks = match cookie.secure {
        SecureCookie::Auto | SecureCookie::Never if host || secure => "secure = true",
        _ if host && &*cookie.path != "/" => "path = \"/\"",
        _ => return,
    };
    let diagnostic = Diagnostic::error(name.span, "browsers drop a cookie of this name");
    reader.push(diagnostic.label(format!("its prefix asks for {lacks}")));
}

fn cookie_name(text: &str) -> Result<Arc<str>, Problem> {
    if text.len() > MAX_NAME_BYTES {
        let message = format!("the name of a cookie has at most {MAX_NAME_BYTES} bytes");
        return Err(Problem::new(message));
    }
    if !headers::is_name(text) {
        let expected = "expected letters, digits and any of !#$%&'*+-.^_`|~";
        return Err(Problem::expected("this is no name of a cookie", expected));
    }
    Ok(Arc::from(text))
}

fn cookie_path(text: &str) -> Result<Arc<str>, Problem> {
    if !text.starts_with('/') {
        let problem = Problem::expected("this is no path", "expected one such as \"/\"");
        return Err(problem.help(format!("paths begin with a slash: \"/{text}\"")));
    }
    let odd = |character: char| !character.is_ascii_graphic() || character == ';';
    if let Some((at, character)) = text.char_indices().find(|(_, character)| odd(*character)) {
        let expected = "expected visible ASCII characters without a semicolon";
        let problem = Problem::expected("this cannot stand in the path of a cookie", expected);
        return Err(problem.at(at..at + character.len_utf8()));
    }
    if text.len() > MAX_PATH_BYTES {
        let message = format!("the path of a cookie has at most {MAX_PATH_BYTES} bytes");
        return Err(Problem::new(message));
    }
    Ok(Arc::from(text))
}
