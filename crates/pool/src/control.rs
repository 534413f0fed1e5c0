//! What the control side of a pool knows, and how a new generation of the pool takes it over.
//!
//! One of the pools of a name owns it: the one that was [ticked](crate::Pool::tick) last. So a pool
//! that was built and never put in force, because something else of its configuration is wrong, has
//! changed nothing. Endpoints are matched by their ids: whoever stays keeps everything, whoever is
//! gone takes with it what was set on it.

use std::collections::HashMap;
use std::sync::Arc;

use subak_base::{EndpointId, Rng, Tick};
use subak_health::{
    EjectionChange, Ejections, Reason, Standing as EjectionStanding, State, Suspects, Verdict,
};

use crate::endpoint::Endpoint;
use crate::event::Event;
use crate::pool::Pool;
use crate::standing::{Change, Questions, Standing};
use crate::tally::Tally;

/// Events that are kept until somebody asks; more at once are counted off, oldest first.
const EVENTS_MAX: usize = 4096;

/// What is known of the endpoints of a pool.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// The generation of the pool that owns it; 0 for none.
    owner: u64,
    endpoints: Vec<Arc<Endpoint>>,
    places: HashMap<EndpointId, usize>,
    names: Vec<Arc<str>>,
    pub(crate) standings: Vec<Standing>,
    /// When each is to be asked next. Beside the standings, so that looking for who is due reads
    /// eight bytes an endpoint.
    pub(crate) dues: Vec<Tick>,
    pub(crate) ejections: Option<Ejections>,
    pub(crate) suspects: Suspects,
    pub(crate) questions: Questions,
    pub(crate) events: Vec<Event>,
    pub(crate) changes: Vec<EjectionChange>,
    pub(crate) tally: Tally,
}

impl Control {
    /// What is known of this endpoint.
    pub(crate) fn standing(&self, id: EndpointId) -> Option<&Standing> {
        self.standings.get(*self.places.get(&id)?)
    }

    /// The place of an endpoint of this pool, which need not be the owner.
    pub(crate) fn place(&self, pool: &Pool, index: usize) -> Option<usize> {
        self.places.get(&pool.members.get(index)?.endpoint.id()).copied()
    }

    /// Whether this pool's indices are the places here.
    pub(crate) fn is_of(&self, pool: &Pool) -> bool {
        self.owner == pool.generation
    }

    /// Hands everything over to this pool, if it is not the owner already.
    pub(crate) fn adopt(&mut self, pool: &Pool, now: Tick, random: &mut Rng) {
        if self.is_of(pool) {
            return;
        }
        let endpoints: Vec<_> = pool.endpoints().cloned().collect();
        let place = |endpoint: &Arc<Endpoint>| self.places.get(&endpoint.id()).copied();
        let places: Vec<_> = endpoints.iter().map(place).collect();
        let mut before: Vec<Option<Standing>> = self.standings.drain(..).map(Some).collect();
        let mut changes = Vec::new();
        for (place, spec) in places.iter().zip(&pool.spec.endpoints) {
            let known = place.and_then(|place| before[place].take());
            let standing = match known {
                Some(mut standing) => {
                    let questions = (&self.questions, &pool.questions);
                    changes.push(standing.adopt(spec.admin, questions, now, random));
                    standing
                }
                None => {
                    changes.push(None);
                    Standing::new(spec.admin, &pool.questions, now, random)
                }
            };
            self.standings.push(standing);
        }
        self.ejections = match (&self.ejections, &pool.spec.eject) {
            (Some(ejections), Some(spec)) => Some(ejections.carry(spec.clone(), &places)),
            (None, Some(spec)) => Some(Ejections::new(spec.clone(), places.len())),
            (_, None) => None,
        };
        self.suspects = self.suspects.carry(&places);
        self.owner = pool.generation;
        self.places = endpoints.iter().map(|endpoint| endpoint.id()).zip(0..).collect();
        self.names = pool.spec.endpoints.iter().map(|spec| (*spec.name).into()).collect();
        self.endpoints = endpoints;
        self.questions = pool.questions.clone();
        self.dues = vec![Tick::default(); places.len()];
        let ends = self.ejections.is_none();
        for (index, change) in changes.into_iter().enumerate() {
            let ended = ends.then(|| self.standings[index].eject(None, &self.questions, now));
            for change in [change, ended.flatten()] {
                let event = self.changed(index, change);
                event.into_iter().for_each(|event| self.keep(event));
            }
        }
    }

    /// To be called after every change of a standing: shows it to picks, and works out when the
    /// endpoint is to be asked next. Answers with what there is to tell.
    pub(crate) fn changed(&mut self, place: usize, change: Option<Change>) -> Option<Event> {
        let standing = &self.standings[place];
        self.dues[place] = standing.next_due();
        self.endpoints[place].show(standing.state());
        change.iter().for_each(|transition| self.tally.changed(transition));
        let name = self.names[place].clone();
        change.map(|transition| Event::Endpoint { index: place, name, transition })
    }

    /// What there is to tell when an agent has answered and the state is the same: another reason of
    /// the agent's than `before`.
    pub(crate) fn agent_argues(&self, place: usize, before: &Reason) -> Option<Event> {
        let Verdict { state, reason, .. } = self.standings[place].availability.verdict().clone();
        let is_news = state == State::Down && matches!(reason, Reason::Agent { .. });
        let name = self.names[place].clone();
        (is_news && reason != *before).then_some(Event::Reason {
            index: place,
            name,
            state,
            reason,
        })
    }

    /// Keeps an event for whoever asks next.
    pub(crate) fn keep(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.remove(0);
        }
        self.events.push(event);
    }

    /// Ends the ejection of one endpoint, if it is ejected.
    pub(crate) fn lift(&mut self, place: usize, now: Tick) -> Option<Event> {
        self.ejections.as_mut()?.lift(place, now, &mut self.changes);
        let lifted = self.changes.pop()?;
        let change = self.standings[lifted.index].eject(None, &self.questions, now);
        self.changed(lifted.index, change)
    }

    /// Puts what the ejections say in force.
    pub(crate) fn apply_ejections(&mut self, now: Tick) {
        for change in std::mem::take(&mut self.changes) {
            let EjectionChange { index, transition } = change;
            let ejection = match transition.to {
                EjectionStanding::Ejected { until } => Some((until, transition.reason)),
                EjectionStanding::In => None,
            };
            let change = self.standings[index].eject(ejection, &self.questions, now);
            let event = self.changed(index, change);
            event.into_iter().for_each(|event| self.keep(event));
        }
    }
}
