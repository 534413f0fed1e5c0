//! What does a client say first, and what becomes of it? Pure: bytes in, a decision out.
//!
//! Headers of records are checked here, because the library tells nearly every wrong one by
//! decode_error. At most one record is kept until the hello is whole; the library bounds a hello that
//! comes in several. Fuzzed against a plain reading of the same bytes.

use std::io;

use rustls::server::{Accepted, AcceptedAlert, Acceptor, ClientHello};
use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

use super::server::ServerTls;

/// The content type of a handshake record: the first byte of a client that speaks TLS.
const HANDSHAKE: u8 = 0x16;
/// The major version of every record since SSL 3.0.
const MAJOR: u8 = 3;
/// Bytes of a record's header: content type, version, length.
const HEADER: usize = 5;
/// The most bytes of a record in clear (RFC 8446, 5.1).
const MOST_BYTES: usize = 1 << 14;

/// Reads the client's hello, in as many pieces as it comes in.
#[derive(Default)]
pub struct Greeting {
    acceptor: Acceptor,
    has_begun: bool,
    /// The header of the present record, as far as it has come.
    header: [u8; HEADER],
    header_length: usize,
    /// Bytes of the present record that are still to come.
    left: usize,
}

/// What has been said so far.
pub enum Greeted {
    /// There has to be more.
    Partly,
    /// It is something in clear, by its first byte. Nothing of it was taken.
    Cleartext,
    /// A hello, whole.
    Hello(Box<Accepted>),
    /// No hello, and the alert for the client, as a whole record.
    Wrong(Error, Box<[u8]>),
}

/// What becomes of a client that has said hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It gets the certificate for its name.
    Served,
    /// It is an authority that has come for a challenge.
    Challenge,
    /// It asks for a name without a certificate, or for none, and those are refused.
    Refused,
}

impl Greeting {
    /// Takes from the beginning of `bytes`, of which there has to be one; says how many it took. What
    /// stands behind the hello's last record is left.
    ///
    /// # Errors
    /// More is kept than a hello may be.
    pub fn read(&mut self, bytes: &[u8]) -> io::Result<(usize, Greeted)> {
        if !std::mem::replace(&mut self.has_begun, true) && is_cleartext(bytes) {
            return Ok((0, Greeted::Cleartext));
        }
        let mut count = 0;
        if self.left == 0 {
            count = bytes.len().min(HEADER - self.header_length);
            self.header[self.header_length..][..count].copy_from_slice(&bytes[..count]);
            self.header_length += count;
            if self.header_length < HEADER {
                return Ok((count, Greeted::Partly));
            }
            self.header_length = 0;
            self.left = match length(self.header) {
                Ok(length) => length,
                Err(error) => return Ok((count, wrong(error, None))),
            };
            let mut header = &self.header[..];
            while !header.is_empty() {
                self.acceptor.read_tls(&mut header)?;
            }
        }
        let mut body = &bytes[count..];
        body = &body[..body.len().min(self.left)];
        if body.is_empty() {
            return Ok((count, Greeted::Partly));
        }
        let taken = self.acceptor.read_tls(&mut body)?;
        self.left -= taken;
        let greeted = match self.acceptor.accept() {
            Ok(Some(accepted)) => Greeted::Hello(Box::new(accepted)),
            Ok(None) => Greeted::Partly,
            Err((error, alert)) => wrong(error, Some(alert)),
        };
        Ok((count + taken, greeted))
    }
}

/// The length of the record with this header.
fn length([kind, major, _, high, low]: [u8; HEADER]) -> Result<usize, Error> {
    let length = usize::from(u16::from_be_bytes([high, low]));
    let wrong = match length {
        _ if kind != HANDSHAKE => InvalidMessage::InvalidContentType,
        _ if major != MAJOR => InvalidMessage::UnknownProtocolVersion,
        0 => InvalidMessage::InvalidEmptyPayload,
        1..=MOST_BYTES => return Ok(length),
        _ => return Err(Error::PeerSentOversizedRecord),
    };
    Err(wrong.into())
}

/// The library's alert, or one by the error where it has none or not the right one.
#[cold]
fn wrong(error: Error, alert: Option<AcceptedAlert>) -> Greeted {
    let mut bytes = Vec::new();
    // It would tell a handshake_failure (RFC 8446, 9.2).
    let is_missing = error == PeerIncompatible::SignatureAlgorithmsExtensionRequired.into();
    if let Some(mut alert) = alert.filter(|_| !is_missing) {
        // Writing to a vector does not fail.
        let _ = alert.write_all(&mut bytes);
    }
    if bytes.is_empty() {
        bytes = fatal(alert_of(&error)).to_vec();
    }
    Greeted::Wrong(error, bytes.into())
}

/// A fatal alert in clear.
pub(super) fn fatal(alert: AlertDescription) -> [u8; 7] {
    [0x15, MAJOR, 3, 0, 2, 2, alert.into()]
}

/// What a client is told by (RFC 8446, 6.2).
fn alert_of(error: &Error) -> AlertDescription {
    match error {
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::InvalidEmptyPayload,
        ) => AlertDescription::UnexpectedMessage,
        Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => {
            AlertDescription::ProtocolVersion
        }
        Error::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
        Error::InvalidMessage(_) => AlertDescription::DecodeError,
        Error::PeerIncompatible(PeerIncompatible::SignatureAlgorithmsExtensionRequired) => {
            AlertDescription::MissingExtension
        }
        Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        _ => AlertDescription::InternalError,
    }
}

/// A method, or the preface of HTTP/2, begins with a letter; nothing of TLS does.
fn is_cleartext(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| *byte != HANDSHAKE && byte.is_ascii_alphabetic())
}

impl ServerTls {
    /// What becomes of a client, before anything has been computed for it.
    pub fn way(&self, hello: &ClientHello<'_>) -> Way {
        if self.challenges().are_for(hello) {
            Way::Challenge
        } else if self.store().refuses(hello.server_name()) {
            Way::Refused
        } else {
            Way::Served
        }
    }
}
