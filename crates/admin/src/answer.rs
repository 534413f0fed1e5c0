//! Answers: JSON, or one line of JSON that says what is wrong and what to do.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

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
    field: Option<Box<(HeaderName, HeaderValue)>>,
    /// Each with its place, where the request had more to be wrong about than fits into a line.
    diagnostics: Option<Box<Value>>,
    /// Whether the connection ends with it.
    closes: bool,
}

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        error: impl Into<String>,
        hint: impl Into<String>,
    ) -> Refusal {
        Refusal {
            status,
            error: error.into(),
            hint: hint.into(),
            field: None,
            diagnostics: None,
            closes: false,
        }
    }

    /// 405 with what is allowed.
    pub(crate) fn method(allowed: &str) -> Refusal {
        let hint = format!("it takes {allowed}");
        let error = "this method does nothing here";
        let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error, hint);
        Refusal {
            field: HeaderValue::from_str(allowed).ok().map(|value| Box::new((ALLOW, value))),
            ..refusal
        }
    }

    /// 401. The connection ends: whoever guesses is to be slow.
    pub(crate) fn unauthorized(error: &str) -> Refusal {
        let hint = "send Authorization: Bearer and the token that stands in the token_file";
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, error, hint);
        let field = HeaderValue::from_static("Bearer realm=\"subak\"");
        let field = Some(Box::new((WWW_AUTHENTICATE, field)));
        Refusal { field, closes: true, ..refusal }
    }

    /// The same with what `subak check --json` would say.
    pub(crate) fn with_diagnostics(self, json: &str) -> Refusal {
        Refusal { diagnostics: serde_json::from_str(json).ok(), ..self }
    }

    /// The same, and the connection ends: what the client has still to send is not read.
    pub(crate) fn closing(self) -> Refusal {
        Refusal { closes: true, ..self }
    }

    pub(crate) fn into_answer(self) -> Answer {
        let mut body = json!({ "error": self.error, "hint": self.hint });
        if let Some(diagnostics) = self.diagnostics {
            body["diagnostics"] = *diagnostics;
        }
        let mut answer = json_answer(self.status, &body);
        if let Some((name, value)) = self.field.map(|field| *field) {
            answer.headers_mut().insert(name, value);
        }
        if self.closes {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// How JSON is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// People read it too.
    Indented,
    /// A third less of it, in a third less of the time.
    Compact,
}

/// A value as JSON, indented.
pub(crate) fn json_answer(status: StatusCode, value: &impl serde::Serialize) -> Answer {
    json_in(Layout::Indented, status, value)
}

/// A value as JSON.
pub(crate) fn json_in(layout: Layout, status: StatusCode, value: &impl serde::Serialize) -> Answer {
    let text = match layout {
        Layout::Indented => serde_json::to_string_pretty(value),
        Layout::Compact => serde_json::to_string(value),
    };
    match text {
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
