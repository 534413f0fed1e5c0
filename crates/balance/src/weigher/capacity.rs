//! C, the capacity of an endpoint beside the others of its pool.
//!
//! C = ΣK·(P ÷ the pool's largest P) ÷ ΣK over the resources whose P every endpoint states: one that
//! is left out by some would count as none of it for them.

use super::{Coefficients, PerResource, Ppm};

/// The largest capacity of each resource in the pool; none where one endpoint does not state its.
pub(super) struct Scale(PerResource<Option<u64>>);

impl Scale {
    pub(super) fn of<'a>(
        mut capacities: impl Iterator<Item = &'a PerResource<Option<u64>>>,
    ) -> Scale {
        let Some(first) = capacities.next() else { return Scale(PerResource::default()) };
        Scale(capacities.fold(stated(first), |largest, capacity| {
            let capacity = stated(capacity);
            largest.map(|resource, largest| Some(largest?.max((*capacity.get(resource))?)))
        }))
    }

    /// C; 1 where nothing can be compared. Never 0, so that it can be divided by.
    pub(super) fn share(
        &self,
        capacity: &PerResource<Option<u64>>,
        coefficients: &Coefficients,
    ) -> Ppm {
        let shares = self.0.map(|resource, largest| {
            let (capacity, largest) = ((*capacity.get(resource))?, largest?);
            Some(Ppm::of(capacity, largest))
        });
        coefficients.mean(&shares).unwrap_or(Ppm::ONE).max(Ppm::saturating(1))
    }
}

/// A capacity of zero is none that is stated.
fn stated(capacity: &PerResource<Option<u64>>) -> PerResource<Option<u64>> {
    capacity.map(|_, capacity| capacity.filter(|capacity| *capacity > 0))
}
