//! Faults that come and go: an endpoint is killed and started again, stopped where it is, or told to be
//! slow, lossy or failing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use subak_lab::endpoint::Condition;

use super::world::{Endpoints, Running};
use crate::model::{Fault, Trouble};

/// Steps of the clock by which faults come and go.
const STEP: Duration = Duration::from_millis(1);

/// How an endpoint is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    is_dead: bool,
    is_silent: bool,
    condition: Condition,
}

impl State {
    const WELL: State = State { is_dead: false, is_silent: false, condition: Condition::WELL };

    /// Of faults that overlap the later in the list counts.
    fn of(faults: &[Fault], place: usize, now: Duration) -> State {
        let here = |fault: &&Fault| {
            fault.endpoints.contains(&place) && (fault.from..fault.until).contains(&now)
        };
        let Some(fault) = faults.iter().rev().find(here) else { return State::WELL };
        let conditioned = |condition| State { condition, ..State::WELL };
        match fault.trouble {
            Trouble::Slow(slow) => conditioned(Condition { slow, ..Condition::WELL }),
            Trouble::Lossy(lossy) => conditioned(Condition { lossy, ..Condition::WELL }),
            Trouble::Failing(failing) => conditioned(Condition { failing, ..Condition::WELL }),
            Trouble::Dead => State { is_dead: true, ..State::WELL },
            Trouble::Silent => State { is_silent: true, ..State::WELL },
            Trouble::Flapping(down, up) => {
                let period = (down + up).as_nanos().max(1);
                let is_dead = (now - fault.from).as_nanos() % period < down.as_nanos();
                State { is_dead, ..State::WELL }
            }
        }
    }

    fn bring_about(self, before: State, endpoint: &mut Running) -> io::Result<()> {
        if before.is_silent && !self.is_silent {
            endpoint.freeze(false)?;
        }
        match (before.is_dead, self.is_dead) {
            (false, true) => endpoint.kill()?,
            (true, false) => endpoint.start()?,
            _ => {}
        }
        // Who comes to life is well.
        let condition = if before.is_dead { Condition::WELL } else { before.condition };
        if self.condition != condition && !self.is_dead {
            endpoint.set(self.condition)?;
        }
        if self.is_silent && !before.is_silent {
            endpoint.freeze(true)?;
        }
        Ok(())
    }
}

/// Lets faults come and go until the load is over; then all endpoints are alive and well.
pub(super) fn trouble(
    faults: &[Fault],
    endpoints: &mut Endpoints,
    began: Instant,
    over: &AtomicBool,
) -> io::Result<()> {
    if faults.is_empty() {
        return Ok(());
    }
    let mut states = vec![State::WELL; endpoints.all.len()];
    loop {
        let is_over = over.load(Ordering::Relaxed);
        let now = began.elapsed();
        for (place, (endpoint, before)) in endpoints.all.iter_mut().zip(&mut states).enumerate() {
            let state = if is_over { State::WELL } else { State::of(faults, place, now) };
            if state != *before {
                state.bring_about(*before, endpoint)?;
                *before = state;
            }
        }
        if is_over {
            return Ok(());
        }
        thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_and_go() {
        let second = Duration::from_secs;
        let fault = |from, until, trouble| Fault {
            endpoints: vec![1],
            from: second(from),
            until: second(until),
            trouble,
        };
        let faults = [
            fault(10, 20, Trouble::Flapping(second(1), second(4))),
            fault(30, 40, Trouble::Slow(8000)),
            fault(35, 36, Trouble::Silent),
        ];
        let at = |place, s| State::of(&faults, place, second(s));
        assert_eq!(at(0, 10), State::WELL);
        assert!(at(1, 10).is_dead && !at(1, 11).is_dead && at(1, 15).is_dead && !at(1, 20).is_dead);
        assert_eq!(at(1, 31).condition.slow, 8000);
        assert!(at(1, 35).is_silent && at(1, 35).condition == Condition::WELL);
    }
}
