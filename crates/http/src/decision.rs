//! Which decision was that? Where somebody wants to know, a request is given a name, once, that an
//! answer's header, the access log and the pick logs show.
//!
//! Cost where nobody does: one branch a request. Else one random number, and with a header 16 bytes.

use subak_base::DecisionId;
use subak_config::{Config, HeaderName, Listener};
use subak_message::Fields;

/// Whether requests of one listener are named, and which header of their answers says it.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    are_named: bool,
    header: Option<HeaderName>,
}

/// A field of an answer that names its decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    header: &'a HeaderName,
    id: DecisionId,
}

impl Decisions {
    /// Named where a header shows it, or a pool writes its picks down.
    pub(crate) fn of(listener: &Listener, config: &Config) -> Decisions {
        let header = listener.decision_header.clone();
        let are_logged = config.pools.iter().any(|pool| pool.pick_log.is_some());
        Decisions { are_named: header.is_some() || are_logged, header }
    }

    /// Names them also where the access log shows it.
    pub(crate) fn also_for_logs(mut self, are_shown: bool) -> Decisions {
        self.are_named |= are_shown;
        self
    }

    /// A name for a new request, where one is wanted.
    #[inline]
    pub(crate) fn name(&self, random: impl FnOnce() -> u64) -> Option<DecisionId> {
        self.are_named.then(|| DecisionId::of(random()))
    }

    /// The field that the answer gets.
    #[inline]
    pub(crate) fn shown(&self, id: Option<DecisionId>) -> Option<Named<'_>> {
        let (header, id) = (self.header.as_ref()?, id?);
        Some(Named { header, id })
    }
}

impl Named<'_> {
    /// Puts the field into the answer, in place of what an endpoint may have put there.
    #[cold]
    pub(crate) fn set(self, fields: &mut Fields) {
        let value = self.id.to_string();
        if let Err(error) = fields.set(self.header.as_str().as_bytes(), value.as_bytes()) {
            tracing::debug!(%error, "the decision's header was left out");
        }
    }
}
