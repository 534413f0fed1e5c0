//! Consent to take the last endpoint of a pool that takes requests out of work.
//!
//! On a terminal the operator is asked. A script is refused, with nothing changed, and says `--yes` where
//! it means that: a rolling restart that meets a pool with nobody else left must stop before the outage.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use super::names::{Found, endpoints_of};
use super::{Context, Failure};
use crate::status::Endpoint;
use crate::written::harmless;

/// Whether the operator has agreed beforehand.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct Consent {
    /// Do it even to the last endpoint of the pool that takes requests
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// Goes on where another endpoint of the pool takes requests, or where the operator agrees.
    pub(super) fn to_lose(self, context: &Context, found: &Found) -> Result<(), Failure> {
        if self.yes || !is_last(&endpoints_of(context, &found.pool)?, &found.endpoint) {
            return Ok(());
        }
        let (endpoint, pool) = (harmless(&found.endpoint), harmless(&found.pool));
        let warning = format!(
            "{endpoint} is the last endpoint of pool {pool} that takes requests; without it they fail"
        );
        let can_ask = !context.json && io::stdin().is_terminal() && io::stderr().is_terminal();
        if !can_ask {
            return Err(Failure::Wrong(format!("{warning}\n  to do it all the same: --yes")));
        }
        if agrees(&warning).map_err(Failure::Output)? {
            return Ok(());
        }
        Err(Failure::Wrong("nothing was changed".to_owned()))
    }
}

/// Asks on the terminal; anything but yes means no.
fn agrees(warning: &str) -> io::Result<bool> {
    let mut err = io::stderr().lock();
    write!(err, "{warning}.\nGo on? [y/N] ").and_then(|()| err.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether this endpoint takes requests and no other of its pool does. One in back-off has just failed,
/// and nobody should rely on it.
fn is_last(endpoints: &[Endpoint], name: &str) -> bool {
    let is_named =
        |one: &Endpoint| [&one.name, &one.address, &one.identity].contains(&&name.to_owned());
    let takes = |one: &Endpoint| one.state == "ready" && one.weight.in_force > 0;
    let (these, others): (Vec<_>, Vec<_>) = endpoints.iter().partition(|one| is_named(one));
    these.iter().any(|one| takes(one))
        && !others.iter().any(|one| takes(one) && one.back_off_for_s.is_none())
}

#[cfg(test)]
mod tests {
    use super::is_last;
    use crate::status::{Endpoint, Weight};

    fn endpoint(name: &str, state: &str) -> Endpoint {
        let (name, state) = (name.to_owned(), state.to_owned());
        Endpoint { name, state, ..Endpoint::default() }
    }

    #[test]
    fn only_an_endpoint_without_a_ready_neighbour_is_the_last() {
        let one = endpoint("one", "ready");
        let with = |other: Endpoint| is_last(&[one.clone(), other], "one");
        assert!(is_last(std::slice::from_ref(&one), "one"));
        for state in ["down", "drain", "maintenance"] {
            assert!(with(endpoint("two", state)), "{state}");
        }
        let ready = endpoint("two", "ready");
        assert!(!with(ready.clone()));
        let weightless = Weight { in_force: 0, ..Weight::default() };
        assert!(with(Endpoint { weight: weightless, ..ready.clone() }));
        assert!(with(Endpoint { back_off_for_s: Some(0.4), ..ready.clone() }));
        // A backup that waits for its turn takes over.
        assert!(!with(Endpoint { eligible: false, tier: "backup".into(), ..ready }));
        // Nothing is lost with an endpoint that takes nothing.
        assert!(!is_last(&[endpoint("one", "drain"), endpoint("two", "down")], "one"));
    }
}
