//! A pool as it is now, in plain values, for whoever shows it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use subak_balance::weights::Factor;
use subak_base::{EndpointId, Tick, Weight};
use subak_health::{Admin, Because, Fault, ProbeResult, Reason, Source, State, Tier};

use subak_limits::CircuitTotals;

use crate::endpoint::NO_CAP;
use crate::latencies::Latencies;
use crate::packets::Traffic;
use crate::pool::{Member, Pool};
use crate::retry_budget::RetryBudgetStatus;
use crate::shadow::ShadowStatus;
use crate::standing::Standing;
use crate::tally::Tally;

/// A pool at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolStatus {
    /// As configured.
    pub name: String,
    /// The algorithm's name in the catalogue.
    pub algorithm: &'static str,
    /// Counts the pools of this name since the process began.
    pub generation: u64,
    /// Counts the balancers compiled in this generation.
    pub version: u64,
    /// The rule by which endpoints are eligible.
    pub because: Because,
    /// Requests that wait for an endpoint.
    pub waiting: usize,
    /// Its circuit, where it has one.
    pub circuit: Option<CircuitTotals>,
    /// How many retries it may make.
    pub retry_budget: RetryBudgetStatus,
    /// What the control side has counted.
    pub tally: Tally,
    /// What decides beside its algorithm.
    pub shadows: Vec<ShadowStatus>,
    /// In configured order.
    pub endpoints: Vec<EndpointStatus>,
}

/// An endpoint at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointStatus {
    /// Stable over reloads.
    pub id: EndpointId,
    /// Protocol and address.
    pub identity: String,
    /// As it is written.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// The name it was resolved from.
    pub origin: Option<Arc<str>>,
    /// When it is used.
    pub tier: Tier,
    /// Its state.
    pub state: State,
    /// Why. Where it is ready and takes no new work for want of weight: that.
    pub reason: Reason,
    /// Since when.
    pub since: Tick,
    /// What is wanted of it administratively, and by whom, whatever its state.
    pub wanted: (Admin, Source),
    /// Whether it takes new work now.
    pub is_eligible: bool,
    /// Until when it is left out because it refused or timed out.
    pub back_off_until: Option<Tick>,
    /// Why, where more is known than that; kept until it answers again.
    pub refusal: Option<Arc<str>>,
    /// Requests dispatched.
    pub hits: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Requests dispatched and not settled.
    pub in_flight: u32,
    /// Of which there may be so many.
    pub max_in_flight: Option<u32>,
    /// Connections open, idle ones included.
    pub connections: u32,
    /// Streams of them now, where requests share them.
    pub streams: u32,
    /// What the algorithm takes its latency for, if it keeps one.
    pub latency: Option<Duration>,
    /// How long its answers took: read by who wants to know.
    pub latencies: Arc<Latencies>,
    /// Packets in the last 14 s, where they are counted.
    pub packets: Option<u64>,
    /// Bytes in the last 14 s, where they are counted.
    pub bytes: Option<u64>,
    /// What its weight is made of.
    pub weight: WeightStatus,
    /// Clients that belong to it, where there is a table.
    pub sessions: Option<usize>,
    /// The last probe's result and its moment.
    pub last_probe: Option<(ProbeResult, Tick)>,
    /// When its agent last answered.
    pub agent_heard: Option<Tick>,
}

/// The layers of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightStatus {
    /// As configured.
    pub configured: Weight,
    /// What was set by API.
    pub operator: Option<Weight>,
    /// What the weigher makes of its reports.
    pub weigher: Factor,
    /// What its agent says, in hundredths.
    pub agent_percent: u32,
    /// How far it has come back.
    pub ramp: Factor,
    /// What is in force, relative to the pool's other weights in force.
    pub in_force: Weight,
}

impl Pool {
    /// The places of endpoints that drain, in their order.
    pub fn draining(&self) -> impl Iterator<Item = usize> {
        let states = self.members.iter().map(|member| member.endpoint.state()).enumerate();
        states.filter(|(_, state)| *state == State::Drain).map(|(index, _)| index)
    }

    /// The endpoints in back-off by name, and what for.
    pub fn back_offs(&self) -> impl Iterator<Item = (&str, Fault)> {
        let names = self.spec.endpoints.iter().map(|spec| &*spec.name);
        let known = names.zip(&self.members);
        known.filter_map(|(name, member)| Some((name, member.endpoint.back_off.fault()?)))
    }

    /// How many clients belong to each endpoint, by its stick key, where there is a table. O(entries).
    pub fn sessions(&self, now: Tick) -> Option<HashMap<u64, usize>> {
        self.table.as_ref().map(|table| table.count(now))
    }

    /// The pool at this moment.
    pub fn status(&self, now: Tick) -> PoolStatus {
        let sessions = self.sessions(now);
        let compiled = self.compiled.load();
        let control = self.continuing.control();
        let endpoint = |(index, member): (usize, &Member)| {
            let (spec, endpoint) = (&self.spec.endpoints[index], &member.endpoint);
            let unknown;
            let standing = match control.standing(endpoint.id()) {
                Some(standing) => standing,
                None => {
                    let mut random = subak_base::Rng::new(0);
                    unknown = Standing::new(spec.admin, &self.questions, now, &mut random);
                    &unknown
                }
            };
            let verdict = standing.availability.verdict();
            let learnt = member.learnt.as_ref();
            let latency = learnt
                .and_then(|learnt| compiled.balancer.latency(learnt.cell(), now, self.summary()));
            let cap = standing.cap(spec);
            let ramp = standing.ramp(self.spec.slow_start.as_ref(), now);
            let weight = compiled.outlook.weights[index];
            let reason = match verdict.state == State::Ready && weight == Weight::ZERO {
                true => Reason::NoWeight,
                false => verdict.reason.clone(),
            };
            EndpointStatus {
                id: endpoint.id(),
                identity: endpoint.identity().to_owned(),
                name: spec.name.clone(),
                address: endpoint.address().to_string(),
                origin: spec.origin.clone(),
                tier: spec.tier(),
                state: verdict.state,
                reason,
                since: verdict.since,
                wanted: standing.availability.layers().admin(),
                is_eligible: compiled.outlook.eligible.contains(index)
                    && !self.is_left_out(&compiled, index, now),
                back_off_until: endpoint.is_backing_off(now).then(|| endpoint.back_off.until()),
                refusal: endpoint.back_off.why(),
                hits: endpoint.hits(),
                failures: endpoint.failures(),
                in_flight: endpoint.in_flight(),
                max_in_flight: (cap != NO_CAP).then_some(cap),
                connections: endpoint.connections(),
                streams: endpoint.streams(),
                latency,
                latencies: endpoint.latencies().clone(),
                packets: learnt.and_then(|learnt| learnt.packets.as_ref()).map(Traffic::sum),
                bytes: learnt.and_then(|learnt| learnt.bytes.as_ref()).map(Traffic::sum),
                weight: WeightStatus {
                    configured: spec.weight,
                    operator: standing.operator,
                    weigher: standing.weigher,
                    agent_percent: standing.percent(),
                    ramp: Factor::from_1024ths(u64::from(ramp)),
                    in_force: weight,
                },
                sessions: sessions
                    .as_ref()
                    .map(|counts| counts.get(&endpoint.stick_key()).copied().unwrap_or(0)),
                last_probe: standing.probe.as_ref().and_then(|probe| probe.last().cloned()),
                agent_heard: standing.agent.as_ref().and_then(|agent| agent.heard()),
            }
        };
        PoolStatus {
            name: self.spec.name.clone(),
            algorithm: self.spec.algorithm.listing().name,
            generation: self.generation,
            version: compiled.version,
            because: compiled.outlook.because,
            waiting: self.queue().waiting(),
            circuit: self.circuit().map(|circuit| circuit.totals(now)),
            retry_budget: self.retry_budget(now),
            tally: control.tally,
            shadows: self.shadows.iter().flat_map(|shadows| shadows.status(now)).collect(),
            endpoints: self.members.iter().enumerate().map(endpoint).collect(),
        }
    }
}
