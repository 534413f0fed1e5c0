//! What the shadows of pools have decided.

use subak_pool::{ShadowStatus, imbalance};
use subak_telemetry::{Exposition, Family, families};

use crate::command::PoolView;
use crate::status::shadow_weights;

/// Hypothetical hits are shown by endpoint for pools of at most so many: four shadows are that many
/// series four times. The Admin API has them of every pool.
const ENDPOINTS_MAX: usize = 250;

type Count = fn(&ShadowStatus) -> u64;

/// Every family of them.
pub(super) fn shadows(text: &mut Exposition, pools: &[PoolView]) {
    let counts: [(&Family, Count); 4] = [
        (&families::SHADOW_DECISIONS, |shadow| shadow.decisions),
        (&families::SHADOW_AGREEMENTS, |shadow| shadow.agreements),
        (&families::SHADOW_REFUSALS, |shadow| shadow.refusals),
        (&families::SHADOW_STOPPED, |shadow| u64::from(shadow.is_stopped)),
    ];
    for (family, count) in counts {
        let mut samples = text.family(family);
        for PoolView { status, .. } in pools {
            for shadow in &status.shadows {
                samples.count(&[&status.name, &shadow.name], count(shadow));
            }
        }
    }
    let mut ratios = text.family(&families::SHADOW_IMBALANCE);
    for PoolView { status, .. } in pools.iter().filter(|pool| !pool.status.shadows.is_empty()) {
        let weights = shadow_weights(status);
        for shadow in &status.shadows {
            for (whose, hits) in [("shadow", &shadow.hits), ("pool", &shadow.taken)] {
                if let Some(ratio) = imbalance(hits, &weights) {
                    ratios.number(&[&status.name, &shadow.name, whose], ratio);
                }
            }
        }
    }
    let mut hits = text.family(&families::SHADOW_HITS);
    for PoolView { status, .. } in pools {
        let listed = status.shadows.iter().filter(|_| status.endpoints.len() <= ENDPOINTS_MAX);
        for shadow in listed {
            for (endpoint, count) in status.endpoints.iter().zip(&shadow.hits) {
                hits.count(&[&status.name, &shadow.name, &endpoint.name], *count);
            }
        }
    }
}
