//! Faults that come and go: an endpoint is killed and started again, stopped where it is, or told to be
//! slow, lossy or failing; balancers are told to drain it. When what is wrong, the simulator says.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use subak_base::Tick;
use subak_lab::endpoint::Condition as Work;
use subak_sim::{Condition, Fault};

use super::balancer::Balancer;
use super::world::{Endpoints, Running};

/// Steps of the clock by which faults come and go.
const STEP: Duration = Duration::from_millis(1);
/// An endpoint that works as it should.
const WELL: Work = Work::WELL;

/// Makes an endpoint as it is to be.
fn bring_about(
    wanted: Condition,
    before: Condition,
    endpoint: &mut Running,
    balancers: &[Balancer],
) -> io::Result<()> {
    if before.is_silent && !wanted.is_silent {
        endpoint.freeze(false)?;
    }
    match (before.is_dead, wanted.is_dead) {
        (false, true) => endpoint.kill()?,
        (true, false) => endpoint.start()?,
        _ => {}
    }
    // Who comes to life is well.
    let worked = if before.is_dead { WELL } else { of_work(before) };
    if of_work(wanted) != worked && !wanted.is_dead {
        endpoint.set(of_work(wanted))?;
    }
    if wanted.is_silent && !before.is_silent {
        endpoint.freeze(true)?;
    }
    if wanted.admin != before.admin {
        let set = |balancer: &Balancer| balancer.set(endpoint.address, wanted.admin);
        balancers.iter().try_for_each(set)?;
    }
    Ok(())
}

/// What a test endpoint does itself.
fn of_work(condition: Condition) -> Work {
    Work {
        slow: condition.slow_per_mille,
        lossy: condition.lossy_per_mille,
        failing: condition.failing_per_mille,
        fault: None,
    }
}

/// Lets faults come and go until the load is over; then all endpoints are alive and well.
pub(super) fn trouble(
    faults: &[Fault],
    endpoints: &mut Endpoints,
    balancers: &[Balancer],
    began: Instant,
    over: &AtomicBool,
) -> io::Result<()> {
    if faults.is_empty() {
        return Ok(());
    }
    let mut conditions = vec![Condition::WELL; endpoints.all.len()];
    loop {
        let is_over = over.load(Ordering::Relaxed);
        let now = Tick(began.elapsed().as_nanos() as u64);
        for (place, endpoint) in endpoints.all.iter_mut().enumerate() {
            let wanted = match is_over {
                true => Condition::WELL,
                false => Condition::of(faults, place, now),
            };
            let before = std::mem::replace(&mut conditions[place], wanted);
            if wanted != before {
                bring_about(wanted, before, endpoint, balancers)?;
            }
        }
        if is_over {
            return Ok(());
        }
        thread::sleep(STEP);
    }
}
