//! Who asks for what, and when: what a run draws before any balancer has a say.

use std::time::Duration;

use subak_base::Rng;

use crate::arrivals::{Arrivals, Herd};
use crate::keys::{Draw, Keys};
use crate::source::{Arrival, Source, Who};

/// One request of an open loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Since the run's beginning.
    pub at: Duration,
    /// Of a trace the place among its clients, otherwise a number as [`crate::client_address`] takes it.
    pub client: u32,
    /// Of a trace the place among its objects, otherwise the number of the key `/o/n`.
    pub object: u32,
}

/// What a run with this seed is asked, in order, so that real servers can be asked the same. Nothing of
/// users, who depend on answers.
pub fn arrivals(
    arrivals: &Arrivals,
    herds: &[Herd],
    clients: &Keys,
    objects: Option<&Keys>,
    seed: u64,
) -> impl Iterator<Item = Asked> {
    let (mut arriving, _, _) = begin(arrivals, herds, clients, objects, seed);
    let trace = match arrivals {
        Arrivals::Trace(trace) => Some(trace.clone()),
        Arrivals::Open { .. } | Arrivals::Users { .. } => None,
    };
    let next = move || loop {
        let arrival = arriving.next()?;
        let (client, object) = match arrival.who {
            Who::Anybody => arriving.choose(),
            Who::Traced(place) => {
                let traced = trace.as_ref()?.requests[place as usize];
                (traced.client, traced.object)
            }
            Who::User(_) => continue,
        };
        return Some(Asked { at: Duration::from_nanos(arrival.at), client, object });
    };
    std::iter::from_fn(next)
}

/// Moments, clients and objects, each from a stream of its own.
#[derive(Debug)]
pub(crate) struct Arriving {
    source: Source,
    gaps: Rng,
    clients: (Draw, Rng),
    objects: Option<Draw>,
    of_objects: Rng,
}

/// One stream for each other purpose, so that what one draws does not change the others.
pub(crate) struct Streams {
    pub(crate) work: Rng,
    pub(crate) control: Rng,
    pub(crate) users: u64,
}

/// The streams of a run, and what seeds are drawn from for more of them.
pub(crate) fn begin(
    arrivals: &Arrivals,
    herds: &[Herd],
    clients: &Keys,
    objects: Option<&Keys>,
    seed: u64,
) -> (Arriving, Streams, Rng) {
    let mut seeds = Rng::new(seed);
    let [mut gaps, of_clients, work, of_objects, control] =
        [(); 5].map(|()| Rng::new(seeds.next_u64()));
    let users = seeds.next_u64();
    let arriving = Arriving {
        source: Source::new(arrivals, herds, &mut gaps),
        gaps,
        clients: (Draw::new(clients), of_clients),
        objects: objects.map(Draw::new),
        of_objects,
    };
    (arriving, Streams { work, control, users }, seeds)
}

impl Arriving {
    /// The next arrival.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        self.source.next(&mut self.gaps)
    }

    /// A client.
    #[inline]
    pub(crate) fn client(&mut self) -> u32 {
        let (clients, random) = &mut self.clients;
        clients.draw(random)
    }

    /// A client, and what it asks for.
    #[inline]
    pub(crate) fn choose(&mut self) -> (u32, u32) {
        let client = self.client();
        let object = self.objects.as_ref().map(|objects| objects.draw(&mut self.of_objects));
        (client, object.unwrap_or(client))
    }

    /// What this client asks for, drawn from a stream of the client's own.
    #[inline]
    pub(crate) fn object_of(&self, client: u32, random: &mut Rng) -> u32 {
        self.objects.as_ref().map_or(client, |objects| objects.draw(random))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use subak_balance::catalogue;

    use super::*;
    use crate::event::{Event, Step};
    use crate::{EndpointModel, Pace, Rate, Scenario, Service, run_with};

    #[test]
    fn a_run_is_asked_what_is_told_beforehand() {
        let algorithm = catalogue::find("ip_hash").expect("it is there").algorithm();
        let second = Duration::from_secs(1);
        let pace = Pace::Bursty {
            calm_per_mille: 500,
            burst_per_mille: 3000,
            calm: second,
            burst: second / 4,
        };
        let rate = Rate::Diurnal { mean: 300.0, swing_per_mille: 800, period: 5 * second };
        let scenario = Scenario {
            clients: Keys::Shared { people: vec![60, 5, 1, 9, 7, 3] },
            objects: Some(Keys::Zipf { count: 100, exponent: 1.0 }),
            herds: vec![Herd { at: second, requests: 50, within: second }],
            duration: 10 * second,
            seed: 7,
            ..Scenario::new(
                Scenario::pool_of(algorithm, &[1, 1]),
                vec![EndpointModel::new(4, Service::Constant(second / 1000)); 2],
                Arrivals::Open { pace, rate },
            )
        };
        let Scenario { arrivals: all, herds, clients, objects, seed, .. } = &scenario;
        let told = arrivals(all, herds, clients, objects.as_ref(), *seed);
        let told: Vec<Asked> = told.take_while(|one| one.at < 10 * second).collect();
        let mut sent = Vec::new();
        let outcome = run_with(&scenario, &mut |event: Event| {
            if let Step::Dispatched { endpoint, .. } = event.step {
                sent.push((event.at.0, endpoint));
            }
        });
        assert_eq!(outcome.requests, told.len() as u64);
        // Each client has an endpoint of its own, so that only the clients told explain the picks.
        let mut of_client = [None; 6];
        for (asked, (at, endpoint)) in told.iter().zip(sent) {
            assert_eq!(asked.at.as_nanos(), u128::from(at));
            let known = of_client[asked.client as usize].get_or_insert(endpoint);
            assert_eq!(*known, endpoint);
        }
        assert!(of_client.contains(&Some(0)) && of_client.contains(&Some(1)), "{of_client:?}");
        assert!(told.iter().any(|one| one.object > 50));
    }
}
