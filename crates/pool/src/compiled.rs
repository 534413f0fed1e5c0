//! The balancer of one moment, with what it was compiled from: published as one, so that whoever picks
//! sees the weights and the eligible endpoints that belong together.
//!
//! A new one continues the one before it: see [`Previous`]. O(n), and what the algorithm needs.

use std::sync::Arc;

use subak_balance::{Algorithm, Balancer, Endpoints, Entry, Previous, Recipe};
use subak_base::Weight;

use crate::eligibility::Outlook;
use crate::spec::EndpointSpec;

/// A balancer and what it was compiled from.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Counts the compilations of a pool, from 0 in every generation.
    pub(crate) version: u64,
    /// With the weights in force.
    pub(crate) list: Arc<Endpoints>,
    pub(crate) outlook: Outlook,
    pub(crate) balancer: Balancer,
}

impl Compiled {
    /// The first of a generation. It continues `before`, that of another one, after so many tickets.
    pub(crate) fn first(
        algorithm: &Algorithm,
        specs: &[EndpointSpec],
        outlook: Outlook,
        before: Option<&Compiled>,
        ticket: u64,
    ) -> Compiled {
        let list = Arc::new(endpoints(specs, &outlook.weights));
        let balancer = balancer(algorithm, &list, &outlook, before, ticket);
        Compiled { version: 0, list, outlook, balancer }
    }

    /// The one after this of the same generation, after so many tickets.
    pub(crate) fn next(
        &self,
        algorithm: &Algorithm,
        specs: &[EndpointSpec],
        outlook: Outlook,
        ticket: u64,
    ) -> Compiled {
        let list = match outlook.weights == self.outlook.weights {
            true => self.list.clone(),
            false => Arc::new(endpoints(specs, &outlook.weights)),
        };
        let balancer = balancer(algorithm, &list, &outlook, Some(self), ticket);
        Compiled { version: self.version + 1, list, outlook, balancer }
    }
}

fn balancer(
    algorithm: &Algorithm,
    list: &Endpoints,
    outlook: &Outlook,
    before: Option<&Compiled>,
    ticket: u64,
) -> Balancer {
    Balancer::build(Recipe {
        algorithm,
        endpoints: list,
        eligible: &outlook.eligible,
        previous: before.map(|before| Previous {
            balancer: &before.balancer,
            endpoints: &before.list,
            ticket,
        }),
    })
}

/// The list that balancers are compiled from, with these weights.
fn endpoints(specs: &[EndpointSpec], weights: &[Weight]) -> Endpoints {
    let entries = specs.iter().zip(weights).map(|(spec, weight)| Entry {
        identity: spec.identity(),
        name: spec.name.clone(),
        weight: *weight,
    });
    Endpoints::new(entries.collect()).expect("endpoints are unique in a pool")
}
