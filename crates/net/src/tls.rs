//! TLS towards clients; TLS towards endpoints is in [`client`].
//!
//! [`ServerTls`] is what one listener does: versions and ciphers, the [`CertificateStore`] that
//! chooses by name and kind of key, session tickets, whether clients show certificates of their own.
//! It makes a [`Stream`](crate::Stream) secure; what was agreed on is in its [`TlsFacts`].

mod challenges;
pub mod client;
mod client_certificates;
mod facts;
mod failure;
mod greeting;
mod handshake;
mod server;
mod store;
mod suites;
mod tickets;
mod verify;

pub use challenges::AcmeChallenges;
pub use client_certificates::ClientCertificates;
pub use facts::TlsFacts;
pub use failure::TlsFailure;
pub use greeting::{Greeted, Greeting, Way};
pub use handshake::HandshakeError;
pub use server::{ServerTls, TlsOptions, TlsSetupError};
pub use store::{CertificateStore, Origin, UnknownName};
pub use subak_certificate::{CertificateError, Pem};
pub use suites::Version;
pub use tickets::TicketKeys;
