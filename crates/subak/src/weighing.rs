//! Lets weights follow what endpoints report of their load: asks their agents, weighs the reports of
//! a pool, and tells the pool the factors.
//!
//! An agent is asked when its endpoint becomes known, again somewhere within the interval that
//! follows, and then once an interval: so a thousand agents are asked one by one and not all at once.
//! A pool is weighed once an interval, and at once when an endpoint is heard for the first time. All
//! of it is the control side's; a pool without a weigher costs it one look-up a tick.
//!
//! What is known of an endpoint is kept by its id: a reload takes nothing away from who stays. With
//! its weigher a pool loses all factors.

mod news;
mod question;

use std::collections::HashMap;
use std::sync::Arc;

use subak_agent::{Report, Token};
use subak_balance::weigher::{self, Standing, Weighed, Weigher};
use subak_balance::weights::Factor;
use subak_base::{EndpointId, Tick};
use subak_config as config;
use subak_pool::Pool;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use news::{Told, log};
use question::{Answer, Question, Schedule};

/// Of all descriptors, questions may have one in so many at a time, and at most so many; others
/// stand in line.
const SHARE_OF_DESCRIPTORS: usize = 16;
const MOST_SOCKETS: usize = 1024;

/// The weighers of all pools that have one.
#[derive(Debug)]
pub(crate) struct Weighing {
    sockets: Arc<Semaphore>,
    pools: HashMap<String, PoolWeighing>,
}

impl Weighing {
    /// For a process that may have so many descriptors.
    pub(crate) fn new(descriptor_limit: usize) -> Weighing {
        let most = (descriptor_limit / SHARE_OF_DESCRIPTORS).clamp(1, MOST_SOCKETS);
        Weighing { sockets: Arc::new(Semaphore::new(most)), pools: HashMap::new() }
    }

    /// Does for this pool, which was ticked at the same moment, what is to be done now. On a runtime.
    pub(crate) fn attend(&mut self, pool: &Pool, spec: Option<&config::Weigher>, now: Tick) {
        let Some(spec) = spec else {
            if self.pools.remove(pool.name()).is_some() {
                let all = 0..pool.endpoints().len();
                let neutral: Vec<_> = all.map(|index| (index, Factor::NEUTRAL)).collect();
                pool.set_factors(&neutral, now);
            }
            return;
        };
        if !self.pools.contains_key(pool.name()) {
            self.pools.insert(pool.name().to_owned(), PoolWeighing::new(pool.name(), spec));
        }
        let Some(weighing) = self.pools.get_mut(pool.name()) else { return };
        weighing.follow(pool, spec, now);
        let has_news = weighing.listen(pool, now);
        weighing.ask(pool, &self.sockets, now);
        if has_news || weighing.weigh_at <= now {
            weighing.weigh(pool, now);
        }
    }

    /// Forgets pools that are gone.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.pools.retain(|name, _| is_there(name));
    }

    /// The weigher of this pool.
    pub(crate) fn of(&self, pool: &str) -> Option<&Weigher> {
        self.pools.get(pool).map(|weighing| &weighing.weigher)
    }
}

/// The weigher of one pool, and the agents it listens to.
#[derive(Debug)]
struct PoolWeighing {
    spec: config::Weigher,
    token: Option<Token>,
    weigher: Weigher,
    /// In the pool's order.
    agents: Vec<Agent>,
    answers: JoinSet<Answer>,
    weigh_at: Tick,
}

/// The agent of one endpoint.
#[derive(Debug)]
struct Agent {
    id: EndpointId,
    schedule: Schedule,
    /// The last report, until the pool is weighed.
    report: Option<weigher::Report>,
    /// Why the last question brought no report.
    failure: Option<String>,
    told: Told,
}

impl PoolWeighing {
    fn new(pool: &str, spec: &config::Weigher) -> PoolWeighing {
        PoolWeighing {
            token: token(pool, spec),
            weigher: Weigher::new(spec.options.clone(), 0),
            spec: spec.clone(),
            agents: Vec::new(),
            answers: JoinSet::new(),
            weigh_at: Tick(0),
        }
    }

    /// Takes over what a reload has changed, if it has: endpoints and options.
    fn follow(&mut self, pool: &Pool, spec: &config::Weigher, now: Tick) {
        let ids = || pool.endpoints().map(|endpoint| endpoint.id());
        if self.spec == *spec && self.agents.iter().map(|agent| agent.id).eq(ids()) {
            return;
        }
        let places = self.agents.drain(..).enumerate();
        let mut before: HashMap<_, _> =
            places.map(|(place, agent)| (agent.id, (place, agent))).collect();
        let count = pool.endpoints().len();
        let mut previous = Vec::with_capacity(count);
        for (index, id) in ids().enumerate() {
            let known = before.remove(&id);
            previous.push(known.as_ref().map(|(place, _)| *place));
            self.agents.push(known.map_or_else(
                || Agent {
                    id,
                    schedule: Schedule::new(now, spec.interval, index, count),
                    report: None,
                    failure: None,
                    told: Told::default(),
                },
                |(_, agent)| agent,
            ));
        }
        self.weigher = self.weigher.reshaped(spec.options.clone(), &previous);
        if self.spec.token != spec.token {
            self.token = token(pool.name(), spec);
        }
        if self.spec.interval != spec.interval || self.spec.port != spec.port {
            for (index, agent) in self.agents.iter_mut().enumerate() {
                agent.schedule.restart(now, spec.interval, index, count);
            }
        }
        self.spec = spec.clone();
        self.weigh_at = now;
    }

    /// Takes in what agents have answered. Whether someone is heard who was not known.
    fn listen(&mut self, pool: &Pool, now: Tick) -> bool {
        let mut has_news = false;
        while let Some(answered) = self.answers.try_join_next() {
            let Ok(Answer { index, id, outcome }) = answered else { continue };
            // After a reload it may be elsewhere, or gone.
            let index = match self.agents.get(index).is_some_and(|agent| agent.id == id) {
                true => index,
                false => match self.agents.iter().position(|agent| agent.id == id) {
                    Some(index) => index,
                    None => continue,
                },
            };
            let agent = &mut self.agents[index];
            agent.schedule.answered();
            let outcome = outcome.map_err(|error| error.to_string());
            match outcome.and_then(|report| counting(report, &self.spec.options, now)) {
                Ok(report) => {
                    agent.report = Some(report);
                    agent.failure = None;
                    has_news |= self.weigher.weighed()[index].standing == Standing::Silent;
                }
                Err(failure) => {
                    let endpoint = pool.endpoint(index).map_or("", |endpoint| endpoint.name());
                    tracing::debug!(pool = pool.name(), endpoint, "no report: {failure}");
                    agent.failure = Some(failure);
                }
            }
        }
        has_news
    }

    /// Asks whom it is time to ask.
    fn ask(&mut self, pool: &Pool, sockets: &Arc<Semaphore>, now: Tick) {
        let Some(token) = &self.token else { return };
        for (index, agent) in self.agents.iter_mut().enumerate() {
            if !agent.schedule.is_due(now) {
                continue;
            }
            let Some(endpoint) = pool.endpoint(index) else { continue };
            let question = Question::to(index, endpoint, &self.spec, token);
            // The configuration lets no endpoint of such a pool be on a unix socket.
            let Some(question) = question else { continue };
            agent.schedule.asked(now, self.spec.interval);
            self.answers.spawn(question.ask(sockets.clone()));
        }
    }

    /// Weighs the pool, puts the factors in force and says what has happened.
    fn weigh(&mut self, pool: &Pool, now: Tick) {
        self.weigh_at = now.after(self.spec.interval);
        let reports: Vec<_> = self.agents.iter_mut().map(|agent| agent.report.take()).collect();
        let before = factors(self.weigher.weighed());
        let after = factors(self.weigher.update(&reports, now));
        if before != after {
            let factors: Vec<_> = after.into_iter().enumerate().collect();
            pool.set_factors(&factors, now);
        }
        let weighed = self.weigher.weighed().iter();
        for ((agent, weighed), endpoint) in
            self.agents.iter_mut().zip(weighed).zip(pool.endpoints())
        {
            let failure = agent.failure.as_deref();
            for news in agent.told.hear(weighed, failure, &self.spec.options, now) {
                log(pool.name(), endpoint.name(), &news);
            }
        }
    }
}

/// A report as it is weighed, unless it says nothing of what counts.
fn counting(
    report: Report,
    options: &weigher::Options,
    now: Tick,
) -> Result<weigher::Report, String> {
    match options.load.mean(&report.used) {
        Some(_) => Ok(report.received(now)),
        None => Err("its report has no use of a resource that counts in `load`".to_owned()),
    }
}

fn factors(weighed: &[Weighed]) -> Vec<Factor> {
    weighed.iter().map(|weighed| weighed.factor).collect()
}

/// What the agents of this pool ask for.
fn token(pool: &str, spec: &config::Weigher) -> Option<Token> {
    // The configuration takes no token that is refused here; should it, nobody is asked.
    let token = Token::new(spec.token.secret());
    token.inspect_err(|error| tracing::error!(pool, "no weigher: {error}")).ok()
}
