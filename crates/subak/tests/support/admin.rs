//! Asks the Admin API of a running Subak.

use std::path::PathBuf;

use serde_json::Value;

use super::{Answer, Client, Subak};

/// Where the Admin API is asked, and what is sent with every request.
pub(crate) struct Admin {
    place: Place,
    fields: String,
}

enum Place {
    Unix(PathBuf),
    Tcp(String),
}

impl Admin {
    /// Where the log says it is.
    #[track_caller]
    pub(crate) fn of(subak: &Subak) -> Admin {
        let log = subak.log();
        let opened = log.lines().rfind(|line| line.contains("the Admin API is open"));
        let place = opened.and_then(|line| line.split("place=").nth(1)).expect("an Admin API");
        let place = place.trim_matches('"');
        let place = match place.starts_with('/') {
            true => Place::Unix(place.into()),
            false => Place::Tcp(place.to_owned()),
        };
        Admin { place, fields: "Host: localhost\r\n".to_owned() }
    }

    /// Sends these fields, lines with their ends, instead of `Host: localhost`.
    pub(crate) fn with(self, fields: &str) -> Admin {
        Admin { fields: fields.to_owned(), ..self }
    }

    /// The path of its socket.
    #[track_caller]
    pub(crate) fn socket(&self) -> &PathBuf {
        match &self.place {
            Place::Unix(path) => path,
            Place::Tcp(address) => panic!("it is asked by TCP, at {address}"),
        }
    }

    #[track_caller]
    pub(crate) fn client(&self) -> Client {
        match &self.place {
            Place::Unix(path) => Client::connect_unix(path),
            Place::Tcp(address) => Client::connect(address),
        }
    }

    /// The answer to one request, on a connection of its own.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut client = self.client();
        let fields = &self.fields;
        let length = body.len();
        client.send(format!(
            "{method} {path} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        ));
        client.answer_to(method)
    }

    /// `/v1/status`.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        json(&self.ask("GET", "/v1/status", ""), 200)
    }

    /// An endpoint of the pool `app`.
    #[track_caller]
    pub(crate) fn endpoint(&self, endpoint: &str) -> Value {
        json(&self.ask("GET", &path(endpoint), ""), 200)
    }

    /// Sets something on an endpoint of the pool `app`.
    #[track_caller]
    pub(crate) fn patch(&self, endpoint: &str, body: &str) -> Value {
        json(&self.ask("PATCH", &path(endpoint), body), 200)
    }

    /// Sets something on an endpoint of the pool `app`, and takes back the rest.
    #[track_caller]
    pub(crate) fn put(&self, endpoint: &str, body: &str) -> Value {
        json(&self.ask("PUT", &path(endpoint), body), 200)
    }

    /// Asserts that this is refused; the error and the hint.
    #[track_caller]
    pub(crate) fn refused(&self, request: (&str, &str, &str), status: u16) -> (String, String) {
        let (method, path, body) = request;
        let answer = json(&self.ask(method, path, body), status);
        let text = |key: &str| answer[key].as_str().expect("a text").to_owned();
        (text("error"), text("hint"))
    }
}

/// The path of an endpoint of the pool `app`.
pub(crate) fn path(endpoint: &str) -> String {
    format!("/v1/pools/app/endpoints/{}", endpoint.replace('%', "%25").replace('/', "%2F"))
}

/// The JSON of an answer that must have this status.
#[track_caller]
pub(crate) fn json(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.field("content-type"), Some("application/json"));
    serde_json::from_str(&answer.text()).expect("JSON")
}
