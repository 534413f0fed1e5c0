//! Certificates: read from PEM, checked against their keys, told apart by name, and what a client's
//! says of the client.
//!
//! No files, no clock, no sockets: bytes and the time come from the caller. `config` uses it to find
//! at `subak check` what would fail at a start, `net` to serve, the control side to see what expires.

#![forbid(unsafe_code)]

mod about;
mod anybody;
mod certificate;
mod date;
mod error;
mod identity;
mod names;
mod ocsp;
mod pem_fault;

pub use about::{About, KeyKind, Validity};
pub use anybody::Anybody;
pub use certificate::{Certificate, Pem};
pub use date::date;
pub use error::CertificateError;
pub use identity::ClientIdentity;
pub use names::{Names, is_covered_by};
pub use ocsp::{OcspError, OcspResponse, OcspStatus};
pub use pem_fault::{Wanted, pem_fault};
