//! HTTPS to the authority: one connection for each request, within limits of time and size.
//!
//! instant-acme leaves this to us. It goes straight to the directory, without a proxy, trusts the
//! machine's authorities or those of `ca`, and remembers when the authority last asked to be left alone
//! (Retry-After of 429 and 503).

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use subak_config::PemFile;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The whole of one request and its answer.
const REQUEST: Duration = Duration::from_secs(20);
/// To open a connection to one address.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of an answer; chains have a few thousand.
const LARGEST: usize = 1024 * 1024;
/// Longer pauses than this are not believed.
const LONGEST_PAUSE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Asks one authority. A clone shares what has been learnt.
#[derive(Clone)]
pub(crate) struct Http {
    tls: TlsConnector,
    pause: Arc<Mutex<Option<SystemTime>>>,
}

impl Http {
    /// Trusts whom `ca` lists, or without it the machine's authorities.
    pub(crate) fn new(ca: Option<&PemFile>) -> Result<Http, String> {
        let mut roots = RootCertStore::empty();
        match ca {
            Some(ca) => {
                for certificate in CertificateDer::pem_slice_iter(&ca.contents) {
                    let certificate = certificate.map_err(|error| error.to_string());
                    let added = certificate
                        .and_then(|one| roots.add(one).map_err(|error| error.to_string()));
                    added.map_err(|error| format!("{}: {error}", ca.path.display()))?;
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
            }
        }
        if roots.is_empty() {
            return Err(
                "this machine trusts no authority: install ca-certificates, or say whom to \
                        trust with `ca`"
                    .into(),
            );
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Http { tls: Arc::new(config).into(), pause: Arc::default() })
    }

    /// When the authority wants to be asked again, if it has said so since this was looked at last.
    pub(crate) fn take_pause(&self) -> Option<SystemTime> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn exchange(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Failed> {
        let (parts, body) = request.into_parts();
        let host = parts.uri.host().ok_or("the authority names a URL without a host")?.to_owned();
        if parts.uri.scheme_str() != Some("https") {
            return Err(format!("the authority names a URL without HTTPS: {}", parts.uri).into());
        }
        let port = parts.uri.port_u16().unwrap_or(443);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let tcp = connect(&host, port).await?;
        let tls = self.tls.connect(name, tcp).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tls)).await?;
        // It ends with its sender.
        tokio::spawn(connection);
        let mut request = Request::from_parts(parts, body);
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let target =
            request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::try_from(authority.unwrap_or(host))?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        *request.uri_mut() = Uri::try_from(target)?;
        let response = sender.send_request(request).await?;
        self.note_pause(&response);
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LARGEST).collect().await?.to_bytes();
        Ok(BytesResponse { parts, body: Box::new(body) })
    }

    fn note_pause<B>(&self, response: &Response<B>) {
        let status = response.status();
        if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::SERVICE_UNAVAILABLE {
            return;
        }
        let value = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let until = value.and_then(|value| pause(value.trim(), SystemTime::now()));
        if let Some(until) = until {
            *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
    }
}

const AGENT: &str = concat!("subak/", env!("CARGO_PKG_VERSION"), " instant-acme");

type Failed = Box<dyn StdError + Send + Sync>;

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let http = self.clone();
        Box::pin(async move {
            let uri = request.uri().clone();
            let failed = |why: String| Error::Other(format!("{uri}: {why}").into());
            match tokio::time::timeout(REQUEST, http.exchange(request)).await {
                Ok(answered) => answered.map_err(|error| failed(chain(&*error))),
                Err(_) => Err(failed(format!("no answer within {} s", REQUEST.as_secs()))),
            }
        })
    }
}

/// To the first of its addresses that answers.
async fn connect(host: &str, port: u16) -> Result<TcpStream, Failed> {
    let host = host.trim_matches(['[', ']']);
    let mut last: Failed = "it has no address".into();
    for address in tokio::net::lookup_host((host, port)).await? {
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = format!("no connection to {address}: {error}").into(),
            Err(_) => last = format!("no connection to {address} in time").into(),
        }
    }
    Err(last)
}

/// When a Retry-After ends: seconds, or a date.
fn pause(value: &str, now: SystemTime) -> Option<SystemTime> {
    let until = match value.parse() {
        Ok(seconds) => now + Duration::from_secs(seconds).min(LONGEST_PAUSE),
        Err(_) => httpdate::parse_http_date(value).ok()?,
    };
    Some(until.min(now + LONGEST_PAUSE))
}

/// An error with what is behind it.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_seconds_or_a_date_and_no_longer_than_a_week() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 20:00:00 GMT").unwrap();
        let after = |seconds| Some(now + Duration::from_secs(seconds));
        assert_eq!(pause("120", now), after(120));
        assert_eq!(pause("Sat, 21 Nov 2026 21:00:00 GMT", now), after(3600));
        assert_eq!(pause("18446744073709551615", now), Some(now + LONGEST_PAUSE));
        assert_eq!(pause("Sat, 21 Nov 2093 21:00:00 GMT", now), Some(now + LONGEST_PAUSE));
        assert_eq!(pause("soon", now), None);
    }
}
