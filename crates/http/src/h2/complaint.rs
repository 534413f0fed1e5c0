//! Warnings about endpoints that break the rules of HTTP/2: one in ten seconds for each endpoint and worker.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use subak_base::{EndpointId, Tick};
use subak_net::now;
use subak_pool::Endpoint;

/// The time between two warnings about one endpoint.
const EVERY: Duration = Duration::from_secs(10);
/// Endpoints that are remembered. Beyond it the one that was warned about first is forgotten.
const MOST: usize = 64;

thread_local! {
    /// Endpoints that were warned about, oldest warning first.
    static WARNED: RefCell<Vec<(EndpointId, Tick)>> = const { RefCell::new(Vec::new()) };
}

/// Warns that an endpoint breaks the rules of HTTP/2.
#[cold]
pub(super) fn complain(endpoint: &Endpoint, fault: &dyn fmt::Display, consequence: &str) {
    let is_due = WARNED.with_borrow_mut(|warned| is_due(warned, endpoint.id(), now()));
    if is_due {
        tracing::warn!(
            endpoint = endpoint.name(),
            "an endpoint breaks the rules of HTTP/2: {fault}; {consequence}"
        );
    }
}

fn is_due(warned: &mut Vec<(EndpointId, Tick)>, endpoint: EndpointId, now: Tick) -> bool {
    if let Some(at) = warned.iter().position(|(one, _)| *one == endpoint) {
        if now.since(warned[at].1) < EVERY {
            return false;
        }
        warned.remove(at);
    } else if warned.len() == MOST {
        warned.remove(0);
    }
    warned.push((endpoint, now));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_endpoint_has_a_warning_in_ten_seconds() {
        let mut warned = Vec::new();
        let mut is_due = |endpoint, second: u64| {
            is_due(&mut warned, EndpointId(endpoint), Tick::from_millis(second * 1000))
        };
        assert!(is_due(1, 0) && is_due(2, 5));
        assert!(!is_due(1, 9) && !is_due(2, 14));
        assert!(is_due(1, 10) && is_due(2, 15));
        assert!((3..3 + MOST as u32).all(|endpoint| is_due(endpoint, 16)));
        assert!(is_due(1, 16), "it was forgotten");
    }
}
