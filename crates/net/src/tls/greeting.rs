//! What does a client say first, and what becomes of it? Pure: bytes in, a decision out.
//!
//! At most one record is kept until the hello is whole; the library bounds a hello that comes in
//! several. Fuzzed against a plain reading of the same bytes.

use std::io;

use rustls::Error;
use rustls::server::{Accepted, AcceptedAlert, Acceptor, ClientHello};

use super::server::ServerTls;

/// The content type of a handshake record: the first byte of a client that speaks TLS.
const HANDSHAKE: u8 = 0x16;

/// Reads the client's hello, in as many pieces as it comes in.
#[derive(Default)]
pub struct Greeting {
    acceptor: Acceptor,
    has_begun: bool,
}

/// What has been said so far.
pub enum Greeted {
    /// There has to be more.
    Partly,
    /// It is something in clear, by its first byte. Nothing of it was taken.
    Cleartext,
    /// A hello, whole.
    Hello(Box<Accepted>),
    /// No hello, and what to tell the client.
    Wrong(Error, Box<AcceptedAlert>),
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
    /// Takes from the beginning of `bytes`, of which there has to be one; says how many it took.
    ///
    /// # Errors
    /// More is kept than a hello may be.
    pub fn read(&mut self, mut bytes: &[u8]) -> io::Result<(usize, Greeted)> {
        if !std::mem::replace(&mut self.has_begun, true) && is_cleartext(bytes) {
            return Ok((0, Greeted::Cleartext));
        }
        let count = self.acceptor.read_tls(&mut bytes)?;
        let greeted = match self.acceptor.accept() {
            Ok(Some(accepted)) => Greeted::Hello(Box::new(accepted)),
            Ok(None) => Greeted::Partly,
            Err((error, alert)) => Greeted::Wrong(error, Box::new(alert)),
        };
        Ok((count, greeted))
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
