//! Answers: JSON, or one line of JSON that says what is wrong and what to do.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

/// An answer as it is sent.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Why a request is not answered as it was meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// What is wrong.
    pub(crate) error: String,
    /// What to do.
    pub(crate) hint: String,
    field: Option<(HeaderName, &'static str)>,
    /// Whether the connection ends with it.
    closes: bool,
}

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        error: impl Into<String>,
        hint: impl Into<String>,
    ) -> Refusal {
        Refusal { status, error: error.into(), hint: hint.into(), field: None, closes: false }
    }

    /// 405 with what is allowed.
    pub(crate) fn method(allowed: &'static str) -> Refusal {
        let hint = format!("it takes {allowed}");
        let error = "this method does nothing here";
        let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error, hint);
        Refusal { field: Some((ALLOW, allowed)), ..refusal }
    }

    /// 401. The connection ends: whoever guesses is to be slow.
    pub(crate) fn unauthorized(error: &str) -> Refusal {
        let hint = "send Authorization: Bearer and the token that stands in the token_file";
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, error, hint);
        let field = Some((WWW_AUTHENTICATE, "Bearer realm=\"subak\""));
        Refusal { field, closes: true, ..refusal }
    }

    /// The same, and the connection ends: what the client has still to send is not read.
    pub(crate) fn closing(self) -> Refusal {
        Refusal { closes: true, ..self }
    }

    pub(crate) fn into_answer(self) -> Answer {
        let body = json!({ "error": self.error, "hint": self.hint });
        let mut answer = json_answer(self.status, &body);
        if let Some((name, value)) = self.field {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if self.closes {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// A value as JSON, indented: people read it too.
pub(crate) fn json_answer(status: StatusCode, value: &impl serde::Serialize) -> Answer {
    match serde_json::to_string_pretty(value) {
        Ok(mut text) => {
            text.push('\n');
            text_answer(status, text, "application/json")
        }
        // No value of ours has keys that are no strings; one that had would be a fault of ours.
        Err(error) => {
            let text = format!("cannot be shown: {error}\n");
            text_answer(StatusCode::INTERNAL_SERVER_ERROR, text, "text/plain; charset=utf-8")
        }
    }
}

/// A text of this type.
pub(crate) fn text_answer(status: StatusCode, text: String, content_type: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    answer
}
