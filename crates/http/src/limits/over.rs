//! What a client is told of a limit: that it is reached, and how much is left.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use subak_config::RateFields;
use subak_limits::Level;
use subak_message::Fields;

use super::{InFlight, RateLimit};

/// What an answer tells of a rate.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(super) limit: Arc<RateLimit>,
    pub(super) level: Level,
}

/// Why a request may not go on.
#[derive(Debug)]
pub(crate) enum Over {
    /// Too many in too short a time.
    Rate {
        /// Of this limit, with what is left.
        told: Told,
        /// Until there is a token.
        wait: Duration,
    },
    /// Too many at once.
    InFlight(Arc<InFlight>),
}

impl Over {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Over::Rate { told, .. } => told.limit.what.status,
            Over::InFlight(limit) => limit.what.status,
        }
    }

    /// Seconds, rounded up.
    pub(crate) fn retry_after_s(&self) -> u32 {
        match self {
            Over::Rate { wait, .. } => seconds(*wait).max(1),
            Over::InFlight(_) => 1,
        }
    }

    /// What the answer tells of it.
    pub(crate) fn told(&self) -> Option<&Told> {
        match self {
            Over::Rate { told, .. } if told.limit.what.fields != RateFields::Never => Some(told),
            Over::Rate { .. } | Over::InFlight(_) => None,
        }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Over::Rate { told, .. } => write!(
                out,
                "too many requests: limit {} allows {}; try again in {} s",
                told.limit.name,
                told.limit.what.text,
                self.retry_after_s()
            ),
            Over::InFlight(limit) => write!(
                out,
                "too many requests at once: limit {} allows {}",
                limit.name, limit.what.most
            ),
        }
    }
}

/// Whole seconds, rounded up.
pub(crate) fn seconds(duration: Duration) -> u32 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    u32::try_from(whole).unwrap_or(u32::MAX)
}

impl Told {
    /// Puts the fields into an answer, in place of what an endpoint may have put there (RateLimit
    /// header fields for HTTP, draft-ietf-httpapi-ratelimit-headers-10 and -11).
    #[cold]
    pub(crate) fn set(&self, fields: &mut Fields) {
        let Level { left, full_in } = self.level;
        let limit = format!("\"{}\";r={left};t={}", self.limit.name, seconds(full_in));
        let policy = &self.limit.policy;
        for (name, value) in [("RateLimit-Policy", &**policy), ("RateLimit", &*limit)] {
            if let Err(error) = fields.set(name.as_bytes(), value.as_bytes()) {
                tracing::debug!(%error, "the field {name} was left out");
            }
        }
    }
}
