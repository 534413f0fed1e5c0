//! Why is there no TLS with an endpoint? A closed list, each with words for the log and for whoever
//! asks, and with what to do.

use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use rustls::{AlertDescription, CertificateError, Error};

use super::verify::SelfSigned;

/// Names of a certificate that are shown; it may have hundreds.
const MOST_NAMES: usize = 8;

/// Why no TLS came about.
#[derive(Debug)]
pub enum TlsFailure {
    /// The endpoint's certificate was good until then.
    Expired(Option<SystemTime>),
    /// The endpoint's certificate is good from then on.
    NotYetValid(Option<SystemTime>),
    /// Nobody who is trusted has signed the endpoint's certificate.
    UnknownIssuer,
    /// The endpoint's certificate is signed by itself, and it is not trusted.
    SelfSigned,
    /// The endpoint's certificate is for other names.
    OtherName {
        /// Which one it has to have.
        expected: String,
        /// Those it has.
        presented: Vec<String>,
    },
    /// The endpoint's certificate was taken back.
    Revoked,
    /// Something else is wrong with the endpoint's certificate.
    Certificate(String),
    /// The endpoint wants a certificate of ours, or another one.
    WantsCertificate(AlertDescription),
    /// The endpoint has ended it with an alert.
    Alert(AlertDescription),
    /// What the endpoint sends is not TLS.
    NotTls,
    /// The endpoint speaks TLS in ways we do not.
    Protocol(String),
    /// The endpoint closed or reset the connection.
    Closed,
    /// The connection failed.
    Broken(io::Error),
    /// It took longer than a connection may take.
    TimedOut,
    /// The endpoint is no TCP address.
    NoTcp,
}

impl TlsFailure {
    /// What the error of a handshake means.
    pub(crate) fn of(error: io::Error) -> TlsFailure {
        match TlsFailure::in_error(&error) {
            Some(failure) => failure,
            None => match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe => TlsFailure::Closed,
                _ => TlsFailure::Broken(error),
            },
        }
    }

    /// What an error of a secured connection says of TLS; none: it is about something else.
    pub fn in_error(error: &io::Error) -> Option<TlsFailure> {
        error.get_ref()?.downcast_ref::<Error>().map(TlsFailure::of_tls)
    }

    fn of_tls(error: &Error) -> TlsFailure {
        match error {
            Error::InvalidCertificate(error) => TlsFailure::of_certificate(error),
            Error::AlertReceived(alert) => match alert {
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied => TlsFailure::WantsCertificate(*alert),
                AlertDescription::NoApplicationProtocol => TlsFailure::no_protocol(),
                alert => TlsFailure::Alert(*alert),
            },
            Error::InvalidMessage(_) => TlsFailure::NotTls,
            Error::NoApplicationProtocol => TlsFailure::no_protocol(),
            Error::PeerIncompatible(why) => TlsFailure::Protocol(format!("{why:?}")),
            Error::NoCertificatesPresented => {
                TlsFailure::Certificate("the endpoint has shown none".into())
            }
            other => TlsFailure::Protocol(other.to_string()),
        }
    }

    fn no_protocol() -> TlsFailure {
        TlsFailure::Protocol("by ALPN it agrees to nothing that the pool speaks".into())
    }

    fn of_certificate(error: &CertificateError) -> TlsFailure {
        let at = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        match error {
            CertificateError::Expired => TlsFailure::Expired(None),
            CertificateError::ExpiredContext { not_after, .. } => {
                TlsFailure::Expired(at(not_after.as_secs()))
            }
            CertificateError::NotValidYet => TlsFailure::NotYetValid(None),
            CertificateError::NotValidYetContext { not_before, .. } => {
                TlsFailure::NotYetValid(at(not_before.as_secs()))
            }
            CertificateError::UnknownIssuer => TlsFailure::UnknownIssuer,
            CertificateError::NotValidForNameContext { expected, presented } => {
                TlsFailure::OtherName {
                    expected: expected.to_str().into_owned(),
                    presented: presented.iter().map(|name| plain(name)).collect(),
                }
            }
            CertificateError::Revoked => TlsFailure::Revoked,
            CertificateError::Other(other) if other.0.is::<SelfSigned>() => TlsFailure::SelfSigned,
            other => TlsFailure::Certificate(other.to_string()),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            TlsFailure::Expired(_) => "renew the endpoint's certificate",
            TlsFailure::NotYetValid(_) => "look at the clocks of both machines",
            TlsFailure::UnknownIssuer => {
                "name the authority that has signed it in the pool's tls = { ca = … }; the endpoint \
                 has to send the certificates between"
            }
            TlsFailure::SelfSigned => {
                "name the endpoint's own certificate in the pool's tls = { ca = … }"
            }
            TlsFailure::OtherName { .. } => {
                "name one of them in the pool's tls = { server_name = … }, or give the endpoint a \
                 certificate with this name"
            }
            TlsFailure::Revoked | TlsFailure::Certificate(_) => {
                "give the endpoint another certificate"
            }
            TlsFailure::WantsCertificate(_) => {
                "name one that the endpoint takes in the pool's tls = { certificate = … }"
            }
            TlsFailure::NotTls => "name the endpoint's TLS port, or leave the pool's `tls` out",
            TlsFailure::Alert(_) | TlsFailure::Protocol(_) => {
                "the endpoint has to speak TLS 1.2 or 1.3, with forward secrecy"
            }
            TlsFailure::Closed | TlsFailure::Broken(_) | TlsFailure::TimedOut => {
                "see the endpoint's own log"
            }
            TlsFailure::NoTcp => "name an address and a port",
        }
    }
}

/// A name as rustls gives it: `DnsName("a.example")`, `IpAddress(127.0.0.1)`.
fn plain(name: &str) -> String {
    let within = |begin, end| name.split_once(begin)?.1.strip_suffix(end);
    within("(\"", "\")").or_else(|| within("(", ")")).unwrap_or(name).to_owned()
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFailure::Expired(None) => out.write_str("its certificate has expired"),
            TlsFailure::Expired(Some(then)) => {
                write!(out, "its certificate has expired: {}", httpdate::fmt_http_date(*then))
            }
            TlsFailure::NotYetValid(None) => out.write_str("its certificate is not yet valid"),
            TlsFailure::NotYetValid(Some(then)) => {
                let then = httpdate::fmt_http_date(*then);
                write!(out, "its certificate is not yet valid: it is from {then}")
            }
            TlsFailure::UnknownIssuer => {
                out.write_str("its certificate is signed by nobody who is trusted")
            }
            TlsFailure::SelfSigned => {
                out.write_str("its certificate is self-signed and not trusted")
            }
            TlsFailure::OtherName { expected, presented } => {
                write!(out, "its certificate is not for {expected} but for ")?;
                match presented.len() {
                    0 => out.write_str("no name at all"),
                    all => {
                        out.write_str(&presented[..all.min(MOST_NAMES)].join(", "))?;
                        match all.saturating_sub(MOST_NAMES) {
                            0 => Ok(()),
                            more => write!(out, " and {more} more"),
                        }
                    }
                }
            }
            TlsFailure::Revoked => out.write_str("its certificate was revoked"),
            TlsFailure::Certificate(what) => {
                write!(out, "its certificate cannot be trusted: {what}")
            }
            TlsFailure::WantsCertificate(alert) => {
                write!(out, "it takes no client without a certificate it trusts ({alert:?})")
            }
            TlsFailure::Alert(alert) => write!(out, "it ended the handshake: {alert:?}"),
            TlsFailure::NotTls => out.write_str("what it sends is not TLS"),
            TlsFailure::Protocol(what) => write!(out, "no TLS that both speak: {what}"),
            TlsFailure::Closed => out.write_str("it closed the connection in the handshake"),
            TlsFailure::Broken(error) => write!(out, "the connection failed: {error}"),
            TlsFailure::TimedOut => out.write_str("no handshake in time"),
            TlsFailure::NoTcp => out.write_str("TLS needs a network address"),
        }
    }
}

impl std::error::Error for TlsFailure {}
