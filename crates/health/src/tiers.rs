//! Who of a pool takes new work: primaries, backups, or whoever is left when all are down.
//!
//! The first line that gives anybody decides. Endpoints without weight take part in none.
//!
//! | | who | when |
//! |---|---|---|
//! | 1 | primaries that are ready | always |
//! | 2 | backups that are ready | no primary is |
//! | 3 | all that are down, primaries and backups alike | [`OnAllDown::FailOpen`] |
//! | 3 | backups that are down | [`OnAllDown::BackupOnly`] |
//! | 4 | nobody | otherwise |
//!
//! Failing open means: when everything looks down, it is as likely that the check is wrong as that
//! every endpoint is, and a request that may fail is better than one that must. Who is in drain or
//! maintenance takes nothing even then: people have said so. Failing open to backups alone is for a
//! backup of another kind, a page that says sorry, which is to be tried before a request is refused,
//! while the primaries are spared.
//!
//! O(n), off the hot path.

use std::fmt;

use subak_base::BitSet;

use crate::verdict::State;

/// When an endpoint is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Tier {
    /// As long as it is ready.
    #[default]
    Primary,
    /// While no primary is.
    Backup,
}

/// Who takes new work when nobody is ready.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnAllDown {
    /// Everybody who is only down.
    #[default]
    FailOpen,
    /// Nobody: requests are answered 503.
    FailClosed,
    /// Backups that are only down.
    BackupOnly,
}

impl OnAllDown {
    /// The word for it in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            OnAllDown::FailOpen => "fail_open",
            OnAllDown::FailClosed => "fail_closed",
            OnAllDown::BackupOnly => "backup_only",
        }
    }
}

/// What matters of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Primary or backup.
    pub tier: Tier,
    /// Its verdict.
    pub state: State,
    /// Whether its weight is more than 0.
    pub has_weight: bool,
}

/// Who takes new work, and by which rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// Indices into the list of candidates.
    pub eligible: BitSet,
    /// The rule.
    pub because: Because,
}

/// Which rule gave a [`Selection`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Because {
    /// Primaries are ready.
    PrimariesReady,
    /// No primary is ready, backups are.
    BackupsReady,
    /// Nobody is ready; all who are down are tried.
    FailedOpen,
    /// Nobody is ready; backups that are down are tried.
    FailedOpenToBackups,
    /// Nobody is ready, and of those that are down nobody is tried.
    FailedClosed,
    /// Nobody is ready, and nobody is down either: all are in drain or maintenance, have no weight, or
    /// are not there.
    NobodyLeft,
}

impl Because {
    /// Whether endpoints are used that are thought to be down.
    pub fn is_desperate(self) -> bool {
        matches!(self, Because::FailedOpen | Because::FailedOpenToBackups)
    }
}

impl fmt::Display for Because {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Because::PrimariesReady => "primaries are ready",
            Because::BackupsReady => "no primary is ready, backups stand in",
            Because::FailedOpen => "no endpoint is ready, those that are down are tried",
            Because::FailedOpenToBackups => "no endpoint is ready, backups that are down are tried",
            Because::FailedClosed => "no endpoint is ready",
            Because::NobodyLeft => "none may take new work (drain, maintenance or weight 0)",
        })
    }
}

/// Decides who takes new work.
pub fn select(candidates: &[Candidate], on_all_down: OnAllDown) -> Selection {
    let none = BitSet::with_capacity(candidates.len());
    let set = |because, wanted: &dyn Fn(&Candidate) -> bool| {
        let mut eligible = BitSet::with_capacity(candidates.len());
        let chosen = candidates.iter().enumerate().filter(|(_, c)| c.has_weight && wanted(c));
        chosen.for_each(|(index, _)| eligible.insert(index));
        (!eligible.is_empty()).then_some(Selection { eligible, because })
    };
    let ready = |tier: Tier| move |c: &Candidate| c.tier == tier && c.state == State::Ready;
    let is_down = |c: &Candidate| c.state == State::Down;
    let refuse = || {
        let because = Because::FailedClosed;
        let somebody = set(because, &is_down).is_some();
        somebody.then_some(Selection { eligible: none.clone(), because })
    };
    let last_resort = || match on_all_down {
        OnAllDown::FailOpen => set(Because::FailedOpen, &is_down),
        OnAllDown::BackupOnly => {
            set(Because::FailedOpenToBackups, &|c| c.tier == Tier::Backup && is_down(c))
                .or_else(refuse)
        }
        OnAllDown::FailClosed => refuse(),
    };
    set(Because::PrimariesReady, &ready(Tier::Primary))
        .or_else(|| set(Because::BackupsReady, &ready(Tier::Backup)))
        .or_else(last_resort)
        .unwrap_or(Selection { eligible: none.clone(), because: Because::NobodyLeft })
}
