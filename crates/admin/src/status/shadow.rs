//! What a pool's shadows have decided, as JSON.

use serde::Serialize;
use subak_base::Weight;
use subak_pool::{NO_FORECAST, PoolStatus, ShadowStatus, imbalance};

use super::{Detail, seconds};

/// What decides beside a pool's algorithm.
#[derive(Serialize, Debug)]
pub(super) struct Shadows<'a> {
    /// What must not be concluded from this.
    caution: &'static str,
    algorithms: Vec<Shadow<'a>>,
}

#[derive(Serialize, Debug)]
struct Shadow<'a> {
    name: &'a str,
    counted_s: f64,
    decisions: u64,
    agreements: u64,
    agreement: Option<f64>,
    refusals: u64,
    /// Of what it has chosen.
    imbalance: Option<f64>,
    /// Of what the pool's algorithm has chosen for the same requests.
    pool_imbalance: Option<f64>,
    stopped: bool,
    /// None where the pool is told of in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<Hits<'a>>>,
}

#[derive(Serialize, Debug)]
struct Hits<'a> {
    name: &'a str,
    hits: u64,
    pool_hits: u64,
}

/// None for a pool without shadows.
pub(super) fn shadows(pool: &PoolStatus, detail: Detail) -> Option<Shadows<'_>> {
    let weights = weights(pool);
    let shadow = |status| shadow(pool, status, &weights, detail);
    (!pool.shadows.is_empty()).then(|| Shadows {
        caution: NO_FORECAST,
        algorithms: pool.shadows.iter().map(shadow).collect(),
    })
}

/// What hits are measured by: the weights in force of those that take new work now.
pub(crate) fn weights(pool: &PoolStatus) -> Vec<Weight> {
    let endpoints = pool.endpoints.iter();
    let weight = endpoints.map(|endpoint| match endpoint.is_eligible {
        true => endpoint.weight.in_force,
        false => Weight::ZERO,
    });
    weight.collect()
}

fn shadow<'a>(
    pool: &'a PoolStatus,
    status: &'a ShadowStatus,
    weights: &[Weight],
    detail: Detail,
) -> Shadow<'a> {
    // In thousandths of a percent.
    let short = |ratio: f64| (ratio * 1e5).round() / 1e5;
    let hits = || {
        let each = pool.endpoints.iter().zip(status.hits.iter().zip(&status.taken));
        each.map(|(endpoint, (hits, taken))| Hits {
            name: &endpoint.name,
            hits: *hits,
            pool_hits: *taken,
        })
    };
    Shadow {
        name: &status.name,
        counted_s: seconds(status.counted),
        decisions: status.decisions,
        agreements: status.agreements,
        agreement: status.agreement().map(short),
        refusals: status.refusals,
        imbalance: imbalance(&status.hits, weights).map(short),
        pool_imbalance: imbalance(&status.taken, weights).map(short),
        stopped: status.is_stopped,
        endpoints: (detail == Detail::Whole).then(|| hits().collect()),
    }
}
