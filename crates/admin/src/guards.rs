//! What keeps a pool that fails from being asked even more: its retry budget and its circuit, as JSON.

use serde::Serialize;
use subak_limits::{CircuitState, CircuitTotals};
use subak_pool::RetryBudgetStatus;

use crate::status::seconds;

/// How many retries a pool may make.
#[derive(Serialize, Debug)]
pub(crate) struct RetryBudget {
    left: u64,
    denied: u64,
}

/// The circuit of a pool.
#[derive(Serialize, Debug)]
pub(crate) struct Circuit {
    state: &'static str,
    /// Until the first trial.
    open_for_s: Option<f64>,
    opened: u64,
    refused: u64,
    full: u64,
    in_flight: u32,
    recent: u32,
    recent_failed: u32,
    failures_in_a_row: u32,
}

pub(crate) fn retry_budget(status: RetryBudgetStatus) -> RetryBudget {
    RetryBudget { left: status.left, denied: status.denied }
}

pub(crate) fn circuit(totals: CircuitTotals) -> Circuit {
    Circuit {
        state: totals.state.name(),
        open_for_s: match totals.state {
            CircuitState::Open(left) => Some(seconds(left)),
            CircuitState::Closed | CircuitState::HalfOpen => None,
        },
        opened: totals.opened,
        refused: totals.refused,
        full: totals.full,
        in_flight: totals.in_flight,
        recent: totals.recent.0,
        recent_failed: totals.recent.1,
        failures_in_a_row: totals.row,
    }
}
