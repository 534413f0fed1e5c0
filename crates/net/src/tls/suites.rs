//! Versions, cipher suites and groups.
//!
//! What the library has is what Mozilla's intermediate profile allows: there is no RC4, CBC, static
//! RSA or SHA-1 to be turned off, so that profiles differ by their least version alone. Clients choose
//! the order of suites, as the recommendations want it: they know whether they have hardware for AES.

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::{SupportedProtocolVersion, version};

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

static FROM_1_2: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
static FROM_1_3: [&SupportedProtocolVersion; 1] = [&version::TLS13];

impl Version {
    /// This one and all later ones.
    pub(super) fn and_later(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Version::Tls12 => &FROM_1_2,
            Version::Tls13 => &FROM_1_3,
        }
    }
}

/// Suites and groups. X25519 goes first, the post-quantum hybrid is for clients that prefer it.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![
            kx_group::X25519,
            kx_group::SECP256R1,
            kx_group::SECP384R1,
            kx_group::X25519MLKEM768,
        ],
        ..default_provider()
    }
}
