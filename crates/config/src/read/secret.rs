//! Files that hold secrets: tokens, and keys that sign cookies.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;

use super::Reader;
use crate::defaults::{
    MAX_SECRET_FILE_BYTES, MAX_SESSION_KEYS, MAX_TOKEN_BYTES, MIN_SESSION_KEY_BYTES,
    MIN_TOKEN_BYTES,
};
use crate::diagnostic::Diagnostic;
use crate::model::{SessionKeys, Token};
use crate::problem::Problem;
use crate::tree::Node;

const NEW_SECRET: &str = "for example from: openssl rand -hex 32";

/// The token in the file that `node` names. White space around it does not belong to it.
pub(super) fn token(reader: &mut Reader<'_>, node: &Node) -> Option<Token> {
    let (path, text) = text(reader, node)?;
    let token = text.trim();
    let message = if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        format!("{} holds more than one word of visible ASCII", path.display())
    } else if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&token.len()) {
        format!("the token in {} has {} characters", path.display(), token.len())
    } else {
        return Some(Token::new(path, token));
    };
    let expected = format!("expected a token of {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} characters");
    reader.take(node, Err(Problem::expected(message, expected).help(NEW_SECRET)))
}

/// The bytes that the file which `node` names holds in base64url, padded or not, and where it is.
pub(super) fn base64_key(reader: &mut Reader<'_>, node: &Node) -> Option<(PathBuf, Arc<[u8]>)> {
    let (path, text) = text(reader, node)?;
    let decoded = URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('=')).ok();
    let decoded = decoded.filter(|bytes| !bytes.is_empty()).ok_or_else(|| {
        let message = format!("{} holds no key in base64url", path.display());
        Problem::expected(message, "expected letters, digits, `-` and `_` of one key")
    });
    let key = reader.take(node, decoded)?;
    Some((path, key.into()))
}

/// The keys in the file that `node` names: one a line, in hexadecimal digits or as text. Empty lines
/// and those that begin with `#` are none.
pub(super) fn session_keys(reader: &mut Reader<'_>, node: &Node) -> Option<SessionKeys> {
    let (path, text) = text(reader, node)?;
    let mut keys: Vec<Arc<[u8]>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bytes = session_key(line).map_err(|what| {
            let message = format!("line {} of {}: {what}", index + 1, path.display());
            let expected = format!("expected a key of at least {MIN_SESSION_KEY_BYTES} bytes");
            Problem::expected(message, expected).help(NEW_SECRET)
        });
        let key: Arc<[u8]> = reader.take(node, bytes)?.into();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let message = match keys.len() {
        0 => format!("{} holds no key", path.display()),
        count if count > MAX_SESSION_KEYS => format!("{} holds {count} keys", path.display()),
        _ => return Some(SessionKeys::new(path, keys)),
    };
    let expected = format!("expected 1 to {MAX_SESSION_KEYS} keys, one a line");
    reader.take(node, Err(Problem::expected(message, expected).help(NEW_SECRET)))
}

/// The bytes of a key, or what is wrong with it.
fn session_key(line: &str) -> Result<Vec<u8>, String> {
    let is_hex = line.bytes().all(|byte| byte.is_ascii_hexdigit());
    if line.len() < MIN_SESSION_KEY_BYTES {
        return Err(format!("a key of {} bytes can be guessed", line.len()));
    }
    if !is_hex || line.len() < 2 * MIN_SESSION_KEY_BYTES {
        return Ok(line.as_bytes().to_vec());
    }
    if line.len() % 2 == 1 {
        return Err("an odd number of hexadecimal digits".to_string());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    Ok(line.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}

/// The text of a file, with a warning when others on the machine may read it.
fn text(reader: &mut Reader<'_>, node: &Node) -> Option<(PathBuf, String)> {
    let (path, bytes) = reader.file(node, MAX_SECRET_FILE_BYTES)?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| {
        let message = format!("{} is no text", path.display());
        Problem::expected(message, "expected a text of UTF-8")
    });
    let text = reader.take(node, text)?;
    if reader.files.open_to_all(&path) {
        let message = format!("{} may be read by everybody on this machine", path.display());
        let warning = Diagnostic::warning(node.span, message).label("this is a secret");
        reader.push(warning.help(format!("chmod 600 {}", path.display())));
    }
    Some((path, text))
}

#[cfg(test)]
mod tests {
    use super::session_key;

    #[test]
    fn a_key_is_hexadecimal_when_it_is_long_enough_to_be() {
        let hex = "00ff".repeat(8);
        assert_eq!(session_key(&hex).unwrap(), [0, 255].repeat(8));
        assert_eq!(session_key(&hex.to_uppercase()).unwrap(), [0, 255].repeat(8));
        let text = "correct horse battery staple";
        assert_eq!(session_key(text).unwrap(), text.as_bytes());
        assert_eq!(session_key("0123456789abcdef").unwrap(), b"0123456789abcdef");
        assert!(session_key("0123456789abcde").is_err());
        assert!(session_key(&"0".repeat(33)).is_err());
    }
}
