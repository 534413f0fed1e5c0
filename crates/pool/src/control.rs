//! What the control side of a pool knows, and how a new generation of the pool takes it over.
//!
//! One of the pools of a name owns it: the one that was [ticked](crate::Pool::tick) last. So a pool
//! that was built and never put in force, because something else of its configuration is wrong, has
//! changed nothing. Endpoints are matched by their ids: whoever stays keeps everything, whoever is
//! gone takes with it what was set on it.

use std::collections::HashMap;

use subak_base::{EndpointId, Rng, Tick};
use subak_health::{EjectionChange, Ejections, Standing as EjectionStanding};

use crate::event::Event;
use crate::pool::Pool;
use crate::standing::{Change, Questions, Standing};

/// Events that are kept until somebody asks; more at once are counted off, oldest first.
const EVENTS_MAX: usize = 4096;

/// What is known of the endpoints of a pool.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// The generation of the pool that owns it; 0 for none.
    owner: u64,
    ids: Vec<EndpointId>,
    places: HashMap<EndpointId, usize>,
    pub(crate) standings: Vec<Standing>,
    /// When each is to be asked next. Beside the standings, so that looking for who is due reads
    /// eight bytes an endpoint.
    pub(crate) dues: Vec<Tick>,
    pub(crate) ejections: Option<Ejections>,
    pub(crate) questions: Questions,
    pub(crate) events: Vec<Event>,
    pub(crate) changes: Vec<EjectionChange>,
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
        let ids: Vec<EndpointId> = pool.members.iter().map(|member| member.endpoint.id()).collect();
        let places: Vec<_> = ids.iter().map(|id| self.places.get(id).copied()).collect();
        let mut before: Vec<Option<Standing>> = self.standings.drain(..).map(Some).collect();
        let mut changes = Vec::new();
        for (index, (place, spec)) in places.iter().zip(&pool.spec.endpoints).enumerate() {
            let known = place.and_then(|place| before[place].take());
            let standing = match known {
                Some(mut standing) => {
                    let questions = (&self.questions, &pool.questions);
                    let change = standing.adopt(spec.admin, questions, now, random);
                    changes.extend(change.map(|change| (index, change)));
                    standing
                }
                None => Standing::new(spec.admin, &pool.questions, now, random),
            };
            self.standings.push(standing);
        }
        self.ejections = match (&self.ejections, &pool.spec.eject) {
            (Some(ejections), Some(spec)) => Some(ejections.carry(spec.clone(), &places)),
            (None, Some(spec)) => Some(Ejections::new(spec.clone(), ids.len())),
            (_, None) => None,
        };
        self.owner = pool.generation;
        self.places = ids.iter().copied().zip(0..).collect();
        self.ids = ids;
        self.questions = pool.questions.clone();
        self.dues = self.standings.iter().map(Standing::next_due).collect();
        for (index, change) in changes {
            self.tell(pool, index, change);
        }
        if self.ejections.is_none() {
            for index in 0..self.standings.len() {
                pool.members[index].endpoint.eject_until(None);
                let change = self.standings[index].eject(None, &self.questions, now);
                self.told(pool, index, change);
            }
        }
    }

    /// Keeps an event for whoever asks next.
    pub(crate) fn tell(&mut self, pool: &Pool, index: usize, transition: Change) {
        let event = self.event(pool, index, transition);
        self.keep(event);
    }

    /// The same for a change that may not be one; and the endpoint may be asked at another time now.
    pub(crate) fn told(&mut self, pool: &Pool, index: usize, change: Option<Change>) {
        self.dues[index] = self.standings[index].next_due();
        if let Some(change) = change {
            self.tell(pool, index, change);
        }
    }

    /// An event of an endpoint.
    pub(crate) fn event(&self, pool: &Pool, place: usize, transition: Change) -> Event {
        let id = self.ids[place];
        let index = pool.members.iter().position(|member| member.endpoint.id() == id);
        let index = index.unwrap_or(place);
        let name = pool.spec.endpoints.get(index).map_or("", |spec| &*spec.name);
        Event::Endpoint { index, name: name.into(), transition }
    }

    pub(crate) fn keep(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.remove(0);
        }
        self.events.push(event);
    }

    /// Puts what the ejections say in force. The pool is the owner.
    pub(crate) fn apply_ejections(&mut self, pool: &Pool, now: Tick) {
        for change in std::mem::take(&mut self.changes) {
            let EjectionChange { index, transition } = change;
            let ejection = match transition.to {
                EjectionStanding::Ejected { until } => Some((until, transition.reason)),
                EjectionStanding::In => None,
            };
            pool.members[index].endpoint.eject_until(ejection.map(|(until, _)| until));
            let change = self.standings[index].eject(ejection, &self.questions, now);
            self.told(pool, index, change);
        }
    }
}
