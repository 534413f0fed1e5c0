//! A balancer in this process as a subject of the conformance suite, sound or broken on purpose.

use std::time::Duration;

use subak_balance::conformance::{Member, Subject};
use subak_balance::{Algorithm, Endpoints, Entry, Key};
use subak_base::{BitSet, Weight};

use crate::support::{Fault, Pool};

/// From one request to the next.
const GAP: Duration = Duration::from_millis(1);

/// What every request takes.
const SERVICE: Duration = Duration::from_millis(10);

/// Requests after which the pool is summarised.
const SUMMARY_EVERY: u64 = 100;

/// What every exchange counts.
const PACKETS: i64 = 10;
const BYTES: i64 = 10_000;

/// A pool under a virtual clock.
pub(crate) struct InProcess {
    pool: Pool,
    numbers: Vec<usize>,
    requests: u64,
    reloads: u64,
}

impl InProcess {
    pub(crate) fn new(algorithm: &Algorithm, members: &[Member], fault: Fault) -> InProcess {
        let numbers: Vec<usize> = members.iter().map(|member| member.number).collect();
        let weights: Vec<u16> = members.iter().map(|member| member.weight).collect();
        let pool = Pool::faulty(algorithm.clone(), list(&numbers, &weights), fault);
        InProcess { pool, numbers, requests: 0, reloads: 0 }
    }
}

impl Subject for InProcess {
    fn begin(&mut self, key: Key<'_>, tried: &[usize]) -> Option<usize> {
        self.requests += 1;
        self.pool.loads.now = self.pool.loads.now.after(GAP);
        if self.requests.is_multiple_of(SUMMARY_EVERY) {
            self.pool.summarise();
        }
        let picked = self.pool.pick_with(key, &tried.iter().copied().collect::<BitSet>())?;
        self.pool.dispatch(picked);
        let loads = &mut self.pool.loads;
        loads.packets[picked].add(loads.now, PACKETS);
        loads.bytes[picked].add(loads.now, BYTES);
        Some(picked)
    }

    fn end(&mut self, member: usize) {
        self.pool.complete(member, SERVICE, false);
    }

    fn reload(&mut self, weights: &[u16], eligible: &[bool]) {
        let is_eligible = |index: &usize| eligible[*index];
        let set = (0..weights.len()).filter(is_eligible).collect();
        let list = list(&self.numbers, weights);
        self.reloads += 1;
        if list == self.pool.endpoints && self.reloads.is_multiple_of(2) {
            // Not compiled yet: picks have to make do with the older balancer.
            self.pool.eligible = set;
        } else {
            self.pool.replace(list, set);
        }
    }
}

fn list(numbers: &[usize], weights: &[u16]) -> Endpoints {
    let entry = |(number, weight): (&usize, &u16)| {
        let name = format!("10.0.{}.{}:80", number / 256, number % 256);
        Entry::new(format!("http://{name}"), name, Weight(*weight))
    };
    Endpoints::new(numbers.iter().zip(weights).map(entry).collect()).unwrap()
}
