//! The secret that a report is given for.
//!
//! A bearer token (RFC 6750): the asking side shows it in `Authorization: Bearer …`. It goes over the
//! wire as it is, so the way between the two has to be private.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use hyper::header::HeaderValue;
use subtle::ConstantTimeEq;

/// A token is at least this long: shorter ones can be guessed.
const MIN_TOKEN_BYTES: usize = 16;
/// And at most this long.
const MAX_TOKEN_BYTES: usize = 1024;

/// A bearer token. Shown nowhere, not even in debug output.
#[derive(Clone)]
pub struct Token {
    /// `Bearer …`
    field: HeaderValue,
}

impl Token {
    /// A token of 16 to 1024 characters that are visible ASCII.
    ///
    /// # Errors
    /// [`TokenError`] says which of the rules it breaks.
    pub fn new(text: &str) -> Result<Token, TokenError> {
        if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&text.len()) {
            return Err(TokenError::Length { bytes: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        let field = HeaderValue::try_from(format!("{SCHEME}{text}"));
        let mut field = field.map_err(|_| TokenError::Characters)?;
        field.set_sensitive(true);
        Ok(Token { field })
    }

    /// The token in a file; white space around it does not belong to it.
    ///
    /// # Errors
    /// [`TokenError`], with the file's name.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let in_file = |error| TokenError::In { path: path.to_owned(), error: Box::new(error) };
        let text = std::fs::read_to_string(path).map_err(|error| in_file(TokenError::Io(error)))?;
        Token::new(text.trim()).map_err(in_file)
    }

    /// What to send in `Authorization`.
    pub(crate) fn field(&self) -> &HeaderValue {
        &self.field
    }

    /// Whether an `Authorization` field has this token. How long that takes tells the length of the
    /// token at most, not how much of it was right.
    pub(crate) fn is_in(&self, field: &HeaderValue) -> bool {
        let (expected, found) = (self.field.as_bytes(), field.as_bytes());
        // The name of the scheme is written in any case.
        let scheme = found.get(..SCHEME.len()).unwrap_or_default();
        scheme.eq_ignore_ascii_case(SCHEME.as_bytes())
            && bool::from(found[SCHEME.len()..].ct_eq(&expected[SCHEME.len()..]))
    }
}

const SCHEME: &str = "Bearer ";

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(…)")
    }
}

/// Why a text or a file has no token.
#[derive(Debug)]
pub enum TokenError {
    /// It is too short or too long.
    Length {
        /// How long it is.
        bytes: usize,
    },
    /// There is something in it that is no visible ASCII character.
    Characters,
    /// The file cannot be read.
    Io(io::Error),
    /// What is wrong with a file.
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<TokenError>,
    },
}

impl fmt::Display for TokenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Length { bytes } => write!(
                out,
                "a token has {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} characters, this one {bytes}\
                 \n  make one with `openssl rand -hex 32`"
            ),
            TokenError::Characters => out.write_str(
                "a token has visible ASCII characters only, no spaces\
                 \n  make one with `openssl rand -hex 32`",
            ),
            TokenError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(out, "{error}\n  this user must be able to read it")
            }
            TokenError::Io(error) => error.fmt(out),
            TokenError::In { path, error } => write!(out, "{}: {error}", path.display()),
        }
    }
}

impl Error for TokenError {}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn only_the_token_itself_is_accepted() {
        let token = Token::new(SECRET).unwrap();
        let is_in = |field: &str| token.is_in(&HeaderValue::from_str(field).unwrap());
        assert!(is_in("Bearer 0123456789abcdef") && is_in("bearer 0123456789abcdef"));
        assert!(token.is_in(token.field()));
        for field in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdee",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789ABCDEF",
            "Bearer  0123456789abcdef",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!is_in(field), "{field}");
        }
        let bytes = HeaderValue::from_bytes(b"Bear\xffr 0123456789abcdef").unwrap();
        assert!(!token.is_in(&bytes));
    }

    #[test]
    fn a_token_can_be_guessed_neither_by_its_length_nor_from_a_log() {
        for text in ["", "0123456789abcde", &"x".repeat(1025)] {
            assert!(matches!(Token::new(text), Err(TokenError::Length { .. })), "{text}");
        }
        for text in ["0123456789abcdef 0123456789", "0123456789abcdef\n", "0123456789abcdef☺"] {
            assert!(matches!(Token::new(text), Err(TokenError::Characters)), "{text}");
        }
        let shown = format!("{:?}", Token::new(SECRET).unwrap());
        assert!(!shown.contains("0123"), "{shown}");
    }

    #[test]
    fn a_file_is_read_without_the_space_around_the_token() {
        let path = std::env::temp_dir().join(format!("subak-token-{}", std::process::id()));
        std::fs::write(&path, format!("\n {SECRET}\r\n")).unwrap();
        let token = Token::read(&path).unwrap();
        assert!(token.is_in(&HeaderValue::from_static("Bearer 0123456789abcdef")));
        std::fs::write(&path, "short").unwrap();
        let error = Token::read(&path).unwrap_err().to_string();
        assert!(error.contains("subak-token") && error.contains("this one 5"), "{error}");
        std::fs::remove_file(&path).unwrap();
        let error = Token::read(&path).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }
}
