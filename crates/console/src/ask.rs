//! Asks the Admin API: one request, one connection, an answer within a limit of time and size.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
pub use hyper::Method;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, InvalidHeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;

use crate::reach::{NotFound, Place, Reach};

/// For a connection and the whole answer. The Admin API itself gives up after 5 s.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer that is read: the status of 100,000 endpoints is smaller.
const MAX_ANSWER_BYTES: usize = 128 * 1024 * 1024;

/// Where the Admin API is, and a token where it wants one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Target {
    place: Place,
    token: Option<HeaderValue>,
}

impl Target {
    /// # Errors
    /// [`AskError::Token`] for a token that no header can carry.
    pub(crate) fn new(place: Place, token: Option<&str>) -> Result<Target, AskError> {
        let field = |token: &str| -> Result<HeaderValue, InvalidHeaderValue> {
            let mut field = HeaderValue::try_from(format!("Bearer {token}"))?;
            field.set_sensitive(true);
            Ok(field)
        };
        let token = token.map(field).transpose().map_err(|_| {
            AskError::Token("the token has characters that no header can carry".to_owned())
        })?;
        Ok(Target { place, token })
    }

    /// The unix socket at this path.
    pub fn socket(path: &Path) -> Target {
        Target { place: Place::Socket(path.to_owned()), token: None }
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        self.place.to_string()
    }

    /// Sends one request. Inside a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`AskError`]: nobody is there, or what was asked was refused.
    pub async fn ask(&self, method: Method, path: &str, body: &str) -> Result<Answer, AskError> {
        let exchanged = tokio::time::timeout(PATIENCE, self.exchange(method, path, body));
        exchanged.await.unwrap_or(Err(AskError::Late { limit: PATIENCE }))
    }

    async fn exchange(&self, method: Method, path: &str, body: &str) -> Result<Answer, AskError> {
        match &self.place {
            Place::Socket(socket) => {
                let stream = UnixStream::connect(socket).await;
                let stream = stream.map_err(|error| AskError::of_socket(socket, error))?;
                self.converse(stream, method, path, body).await
            }
            Place::Tcp(address) => {
                let stream = TcpStream::connect(&**address).await;
                let stream = stream.map_err(|error| AskError::Connect(address.clone(), error))?;
                self.converse(stream, method, path, body).await
            }
        }
    }

    async fn converse<S>(
        &self,
        stream: S,
        method: Method,
        path: &str,
        body: &str,
    ) -> Result<Answer, AskError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let request = self.request(method, path, body)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(AskError::Http)?;
        let question = async {
            let response = sender.send_request(request).await.map_err(AskError::Http)?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
                Ok(error) => AskError::Http(*error),
                Err(error) if error.is::<LengthLimitError>() => AskError::TooLong,
                Err(error) => AskError::NotUnderstood(error.to_string()),
            })?;
            Answer { status, body: body.to_bytes() }.checked()
        };
        tokio::pin!(question, connection);
        let mut connected = true;
        loop {
            tokio::select! {
                outcome = &mut question => return outcome,
                // It may be closed before all that has arrived is read.
                _ = &mut connection, if connected => connected = false,
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: &str,
    ) -> Result<Request<Full<Bytes>>, AskError> {
        let uri = Uri::try_from(path)
            .map_err(|error| AskError::NotUnderstood(format!("{path:?} is no path: {error}")))?;
        let mut request = Request::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
        (*request.method_mut(), *request.uri_mut()) = (method, uri);
        let fields = request.headers_mut();
        let host = match &self.place {
            Place::Socket(_) => None,
            Place::Tcp(address) => HeaderValue::try_from(address).ok(),
        };
        fields.insert(HOST, host.unwrap_or(HeaderValue::from_static("localhost")));
        fields.insert(ACCEPT, HeaderValue::from_static("application/json, text/plain, */*"));
        if !body.is_empty() {
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token {
            fields.insert(AUTHORIZATION, token.clone());
        }
        Ok(request)
    }
}

/// Asks and waits: for commands that do one thing after the other.
#[derive(Debug)]
pub struct Client {
    target: Target,
    runtime: Runtime,
}

impl Client {
    /// Finds the process that the command line means.
    ///
    /// # Errors
    /// [`AskError`]: none runs, several do, or its token cannot be read.
    pub fn reach(reach: &Reach) -> Result<Client, AskError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(AskError::System)?;
        let target = runtime.block_on(reach.find())?;
        Ok(Client { target, runtime })
    }

    /// Where it was found.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// # Errors
    /// As [`Target::ask`].
    pub fn get(&self, path: &str) -> Result<Answer, AskError> {
        self.ask(Method::GET, path, "")
    }

    /// Sends a JSON body.
    ///
    /// # Errors
    /// As [`Target::ask`].
    pub fn send(&self, method: Method, path: &str, body: &Value) -> Result<Answer, AskError> {
        self.ask(method, path, &body.to_string())
    }

    /// # Errors
    /// As [`Target::ask`].
    pub fn ask(&self, method: Method, path: &str, body: &str) -> Result<Answer, AskError> {
        self.runtime.block_on(self.target.ask(method, path, body))
    }
}

/// What was answered, with a status below 300.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    body: Bytes,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON of this shape.
    ///
    /// # Errors
    /// [`AskError::NotUnderstood`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, AskError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            AskError::NotUnderstood(format!("the answer has another shape than expected: {error}"))
        })
    }

    fn checked(self) -> Result<Answer, AskError> {
        if self.status < 300 {
            return Ok(self);
        }
        let said: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let text = |key: &str| said[key].as_str().map(str::to_owned);
        Err(AskError::Refused {
            status: self.status,
            error: text("error").unwrap_or_else(|| format!("answered {}", self.status)),
            hint: text("hint").unwrap_or_default(),
            said,
        })
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// No process was found, or several.
    NotFound(NotFound),
    /// The socket belongs to another user.
    Rights(PathBuf),
    /// No connection.
    Connect(String, io::Error),
    /// No answer in time.
    Late {
        /// The limit.
        limit: Duration,
    },
    /// What came was not HTTP, or ended too early.
    Http(hyper::Error),
    /// More than any answer has.
    TooLong,
    /// The answer, or the question, is not what it should be.
    NotUnderstood(String),
    /// The token cannot be used.
    Token(String),
    /// It said no.
    Refused {
        /// Of HTTP.
        status: u16,
        /// What is wrong.
        error: String,
        /// What to do.
        hint: String,
        /// The whole answer.
        said: Value,
    },
    /// This machine lacks something.
    System(io::Error),
}

impl AskError {
    fn of_socket(path: &Path, error: io::Error) -> AskError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => AskError::Rights(path.to_owned()),
            _ => AskError::Connect(path.display().to_string(), error),
        }
    }

    /// Whether what was asked is at fault, and not what runs: exit status 2 and not 1.
    pub fn is_wrong_question(&self) -> bool {
        match self {
            AskError::Refused { status, .. } => matches!(status, 400 | 401 | 404 | 405 | 409 | 422),
            AskError::Token(_) => true,
            AskError::NotFound(NotFound::Url(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NotFound(not) => not.fmt(out),
            AskError::Rights(path) => write!(
                out,
                "{} belongs to another user: run this as the user Subak runs as, or as root \
                 (sudo)",
                path.display()
            ),
            AskError::Connect(place, error) => write!(
                out,
                "nobody answers at {place}: {error}; does Subak run? Its log says \"the Admin API \
                 is open\" and where"
            ),
            AskError::Late { limit } => {
                write!(out, "no answer within {limit:?}; it may be busy with a reload: try again")
            }
            AskError::Http(error) => {
                write!(out, "no HTTP answer: {error}; is it the Admin API that listens there?")
            }
            AskError::TooLong => {
                write!(out, "the answer has more than {MAX_ANSWER_BYTES} bytes")
            }
            AskError::NotUnderstood(what) => out.write_str(what),
            AskError::Token(what) => out.write_str(what),
            AskError::Refused { error, hint, .. } if hint.is_empty() => out.write_str(error),
            AskError::Refused { error, hint, .. } => write!(out, "{error}\n  {hint}"),
            AskError::System(error) => write!(out, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for AskError {}
