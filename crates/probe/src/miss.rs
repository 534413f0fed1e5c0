//! Why a question was not answered as it should be.
//!
//! Either the endpoint is to blame, or this machine is: a question for which there was no descriptor,
//! port or memory says nothing about the endpoint.

use std::fmt;
use std::io::{Error, ErrorKind};

use libc::{EADDRINUSE, EADDRNOTAVAIL, EMFILE, ENFILE, ENOBUFS, ENOMEM};
use subak_health::{Obstacle, ProbeFailure, ProbeResult};
use subak_net::tls::TlsFailure;

/// Why there is no good answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Miss {
    /// Because of the endpoint.
    Failed(ProbeFailure),
    /// Because of this machine.
    Inconclusive(Obstacle),
}

impl Miss {
    /// What an error of a socket means.
    pub(crate) fn of(error: &Error) -> Miss {
        // Of TLS 1.3 an endpoint says after the handshake that it wants a certificate.
        if let Some(failure) = TlsFailure::in_error(error) {
            return Miss::Failed(ProbeFailure::Tls(failure.to_string().into()));
        }
        match error.raw_os_error() {
            Some(EMFILE | ENFILE) => Miss::Inconclusive(Obstacle::Descriptors),
            // For want of another port towards this endpoint the system says either.
            Some(EADDRNOTAVAIL | EADDRINUSE) => Miss::Inconclusive(Obstacle::Ports),
            Some(ENOMEM | ENOBUFS) => Miss::Inconclusive(Obstacle::Memory),
            _ => Miss::Failed(match error.kind() {
                ErrorKind::ConnectionRefused => ProbeFailure::Refused,
                ErrorKind::NotFound => ProbeFailure::NoSocket,
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ProbeFailure::Reset,
                // TLS that ends without saying so.
                ErrorKind::UnexpectedEof => ProbeFailure::Closed,
                _ => ProbeFailure::Unreachable,
            }),
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::Failed(failure) => failure.fmt(out),
            Miss::Inconclusive(obstacle) => obstacle.fmt(out),
        }
    }
}

impl From<ProbeFailure> for Miss {
    fn from(failure: ProbeFailure) -> Miss {
        Miss::Failed(failure)
    }
}

impl From<Miss> for ProbeResult {
    fn from(miss: Miss) -> ProbeResult {
        match miss {
            Miss::Failed(failure) => ProbeResult::Failed(failure),
            Miss::Inconclusive(obstacle) => ProbeResult::Inconclusive(obstacle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_not_held_against_the_endpoint() {
        let of = |number| Miss::of(&Error::from_raw_os_error(number));
        for (numbers, obstacle) in [
            ([EMFILE, ENFILE], Obstacle::Descriptors),
            ([EADDRNOTAVAIL, EADDRINUSE], Obstacle::Ports),
            ([ENOMEM, ENOBUFS], Obstacle::Memory),
        ] {
            assert_eq!(numbers.map(of), [(); 2].map(|()| Miss::Inconclusive(obstacle)));
        }
        for (number, failure) in [
            (libc::ECONNREFUSED, ProbeFailure::Refused),
            (libc::ECONNRESET, ProbeFailure::Reset),
            (libc::EPIPE, ProbeFailure::Reset),
            (libc::ENOENT, ProbeFailure::NoSocket),
            (libc::EHOSTUNREACH, ProbeFailure::Unreachable),
            (libc::ENETUNREACH, ProbeFailure::Unreachable),
            (libc::EACCES, ProbeFailure::Unreachable),
        ] {
            assert_eq!(of(number), Miss::Failed(failure));
        }
    }
}
