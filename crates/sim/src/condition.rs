//! How is an endpoint at a moment? A pure function of the list of faults.

use std::time::Duration;

use subak_base::Tick;
use subak_health::Admin;

use crate::histogram::nanos;
use crate::trouble::{Fault, Trouble};

/// What is wrong with an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// It refuses connections; what it had is reset.
    pub is_dead: bool,
    /// It takes everything and answers nothing.
    pub is_silent: bool,
    /// What its work takes, in thousandths of the usual.
    pub slow_per_mille: u32,
    /// How many of its answers break off, in thousandths.
    pub lossy_per_mille: u32,
    /// How many of its requests it answers 500 at once, in thousandths.
    pub failing_per_mille: u32,
    /// What the operators set it to.
    pub admin: Option<Admin>,
}

impl Condition {
    /// Nothing is.
    pub const WELL: Condition = Condition {
        is_dead: false,
        is_silent: false,
        slow_per_mille: 1000,
        lossy_per_mille: 0,
        failing_per_mille: 0,
        admin: None,
    };

    /// Of the endpoint at this place at this moment. Where faults overlap, the later in the list counts.
    pub fn of(faults: &[Fault], endpoint: usize, at: Tick) -> Condition {
        let Tick(at) = at;
        let on = |fault: &&Fault| (nanos(fault.from)..nanos(fault.until)).contains(&at);
        let of_it = |fault: &Fault| {
            let place = fault.endpoints.iter().position(|one| *one == endpoint)?;
            Some(fault.trouble.condition(place, at - nanos(fault.from)))
        };
        faults.iter().rev().filter(on).find_map(of_it).unwrap_or(Condition::WELL)
    }
}

impl Trouble {
    /// Of the endpoint at this place of the fault's list, so long after its beginning.
    fn condition(self, place: usize, since: u64) -> Condition {
        let well = Condition::WELL;
        match self {
            Trouble::Slow { per_mille } => Condition { slow_per_mille: per_mille, ..well },
            Trouble::Dead => Condition { is_dead: true, ..well },
            Trouble::Silent => Condition { is_silent: true, ..well },
            Trouble::Lossy { per_mille } => Condition { lossy_per_mille: per_mille, ..well },
            Trouble::Failing { per_mille } => Condition { failing_per_mille: per_mille, ..well },
            Trouble::Flapping { down, up } => {
                let turn = period(down, up);
                Condition { is_dead: since % turn < nanos(down), ..well }
            }
            Trouble::Deploy { drain, away } => {
                let turn = period(drain, away);
                match since.checked_sub(turn.saturating_mul(place as u64)) {
                    Some(into) if into < nanos(drain) => {
                        Condition { admin: Some(Admin::Drain), ..well }
                    }
                    Some(into) if into < turn => {
                        let admin = (!drain.is_zero()).then_some(Admin::Maintenance);
                        Condition { is_dead: true, admin, ..well }
                    }
                    _ => well,
                }
            }
        }
    }
}

fn period(first: Duration, second: Duration) -> u64 {
    nanos(first).saturating_add(nanos(second)).max(1)
}

/// At most so many changes of one fault are looked at.
const CHANGES_MAX: u64 = 1_000_000;

/// The moments at which something may change, with the endpoint, in order.
pub(crate) fn changes(faults: &[Fault]) -> Vec<(u64, usize)> {
    let mut changes = Vec::new();
    for fault in faults {
        let (from, until) = (nanos(fault.from), nanos(fault.until));
        if from >= until {
            continue;
        }
        for (place, endpoint) in fault.endpoints.iter().enumerate() {
            changes.extend([(from, *endpoint), (until, *endpoint)]);
            let (begins, first, turn, turns) = match fault.trouble {
                Trouble::Flapping { down, up } => (from, down, period(down, up), CHANGES_MAX),
                Trouble::Deploy { drain, away } => {
                    let turn = period(drain, away);
                    (from.saturating_add(turn.saturating_mul(place as u64)), drain, turn, 1)
                }
                _ => continue,
            };
            let turns = turns.min((until.saturating_sub(begins) / turn).saturating_add(1));
            let each = (0..turns).flat_map(|number| {
                let at = begins.saturating_add(turn.saturating_mul(number));
                [at, at.saturating_add(nanos(first)), at.saturating_add(turn)]
            });
            changes.extend(each.filter(|at| *at < until).map(|at| (at, *endpoint)));
        }
    }
    changes.sort_unstable();
    changes.dedup();
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn fault(endpoints: &[usize], from: u64, until: u64, trouble: Trouble) -> Fault {
        let at = Duration::from_secs;
        Fault { endpoints: endpoints.to_vec(), from: at(from), until: at(until), trouble }
    }

    /// The conditions between changes, by sampling every half second.
    fn dead(faults: &[Fault], endpoint: usize, until: u64) -> String {
        let mark = |half| match Condition::of(faults, endpoint, Tick(half * SECOND / 2)) {
            Condition { admin: Some(Admin::Drain), .. } => 'd',
            Condition { is_dead: true, .. } => 'x',
            Condition { slow_per_mille: 1000, .. } => '.',
            _ => 's',
        };
        (0..2 * until).map(mark).collect()
    }

    #[test]
    fn who_flaps_is_dead_and_alive_by_turns() {
        let second = Duration::from_secs(1);
        let faults = [fault(&[1], 2, 7, Trouble::Flapping { down: second, up: 2 * second })];
        assert_eq!(dead(&faults, 1, 8), "....xx....xx....");
        assert_eq!(dead(&faults, 0, 8), "................");
        let times: Vec<u64> = changes(&faults).iter().map(|(at, _)| at / SECOND).collect();
        assert_eq!(times, [2, 3, 5, 6, 7]);
    }

    #[test]
    fn a_deploy_goes_round_and_its_end_cuts_it_off() {
        let second = Duration::from_secs(1);
        let trouble = Trouble::Deploy { drain: second, away: second };
        let faults = [fault(&[2, 0, 1], 1, 6, trouble)];
        assert_eq!(dead(&faults, 2, 8), "..ddxx..........");
        assert_eq!(dead(&faults, 0, 8), "......ddxx......");
        assert_eq!(dead(&faults, 1, 8), "..........dd....");
    }

    #[test]
    fn of_two_troubles_the_later_in_the_list_counts() {
        let slow = Trouble::Slow { per_mille: 2000 };
        let faults = [fault(&[0], 0, 4, Trouble::Dead), fault(&[0], 1, 2, slow)];
        assert_eq!(dead(&faults, 0, 5), "xxssxxxx..");
    }

    #[test]
    fn every_change_is_at_a_moment_that_is_listed() {
        let ms = Duration::from_millis;
        let faults = [
            fault(&[0, 3], 1, 9, Trouble::Flapping { down: ms(300), up: ms(450) }),
            fault(&[3, 1, 2], 2, 30, Trouble::Deploy { drain: ms(2500), away: ms(1200) }),
            fault(&[2], 3, 5, Trouble::Silent),
        ];
        let changes = changes(&faults);
        for endpoint in 0..4 {
            let mut before = Condition::of(&faults, endpoint, Tick(0));
            for step in 0..3200 {
                let at = step * 10_000_000;
                let now = Condition::of(&faults, endpoint, Tick(at));
                assert!(now == before || changes.contains(&(at, endpoint)), "{endpoint} {at}");
                before = now;
            }
        }
    }
}
