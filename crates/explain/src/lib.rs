//! Why did, or would, a request go there? The answer as a value, and as text for people.
//!
//! | value | answers |
//! |---|---|
//! | [`Question`] | what request is meant |
//! | [`Explanation`] | where it would go now: listener, routes, pool, candidates with scores, endpoint |
//! | [`Picks`] | where the latest requests went, from the pick logs |
//!
//! The Admin API sends these values as JSON, `subak explain` shows them with [`text`]; offline it makes
//! them itself, from a configuration. Who knows routes (`http`) fills them in; this crate knows pools.

#![forbid(unsafe_code)]

mod explanation;
mod listener;
mod pick;
mod picks;
mod question;
mod recorded;
pub mod text;

pub use explanation::{
    Action, Candidate, Condition, Explanation, Home, Key, LimitTold, ListenerTold, Outcome,
    PoolTold, RouteTold, Verdict,
};
pub use listener::{Choice, Door, NoListener, choose};
pub use picks::{Compared, NamedPick, PICKS_MAX, Picks, Search};
pub use question::{BadQuestion, Question, Url};
pub use recorded::{Looked, NotReplayable, RecordedBalancer, RecordedPick, Repeated};
