//! Why certificate and key cannot be used.

use std::fmt;
use std::path::PathBuf;

/// A file of a certificate that cannot be used, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateError {
    /// The file that is wrong.
    pub path: PathBuf,
    /// What is wrong with it. Never holds bytes of a key.
    pub problem: String,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for CertificateError {}
