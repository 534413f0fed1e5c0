//! A compiled, immutable algorithm.

use std::time::Duration;

use subak_base::{BitSet, Tick, Weight};

use crate::catalogue::{Algorithm, Wants};
use crate::endpoints::Endpoints;
use crate::request::{LoadView, PickRequest};
use crate::rotation::{Beginning, Rotation};
use crate::rules::{Compiled, Pick};
use crate::score::Score;
use crate::table::Table;

/// What a balancer is compiled from.
#[derive(Clone, Copy)]
pub struct Recipe<'a> {
    /// The algorithm and its options.
    pub algorithm: &'a Algorithm,
    /// The pool's whole list.
    pub endpoints: &'a Endpoints,
    /// Those of the list that may take new work. One of weight 0 never does, member or not.
    pub eligible: &'a BitSet,
    /// The balancer this one replaces: nothing restarts.
    pub previous: Option<Previous<'a>>,
}

/// The balancer that a new one takes over from.
#[derive(Clone, Copy)]
pub struct Previous<'a> {
    /// The balancer.
    pub balancer: &'a Balancer,
    /// The list it was compiled from; endpoints are matched by identity.
    pub endpoints: &'a Endpoints,
    /// How many tickets the pool has drawn so far: the first that the new balancer counts from.
    pub ticket: u64,
}

/// A compiled algorithm over one list of endpoints.
#[derive(Debug)]
pub struct Balancer {
    rule: Compiled,
    rotation: Rotation,
    weights: Box<[Weight]>,
    wants: Wants,
}

impl Balancer {
    /// Compiles. Off the hot path: allocates, and takes some milliseconds for 10,000 endpoints.
    pub fn build(recipe: Recipe<'_>) -> Balancer {
        let weights = recipe.endpoints.iter().map(|entry| entry.weight).collect();
        let (rule, rotation) = (Compiled::build(&recipe), Rotation::build(&recipe));
        Balancer { rule, rotation, weights, wants: recipe.algorithm.traits().wants }
    }

    /// Compiles again what was compiled from the same recipe and has had this
    /// [`beginning`](Balancer::beginning), whatever came before it; the recipe's `previous` is not looked at.
    /// None for a beginning of something else.
    pub fn resume(recipe: Recipe<'_>, beginning: &Beginning) -> Option<Balancer> {
        let recipe = Recipe { previous: None, ..recipe };
        let rotation = Rotation::resume(&recipe, beginning)?;
        Some(Balancer { rotation, ..Balancer::build(recipe) })
    }

    /// Where its round robin began.
    pub fn beginning(&self) -> Beginning {
        self.rotation.beginning()
    }

    /// The index of the endpoint that takes this request: eligible, untried and of some weight;
    /// none exactly when there is no such endpoint. Neither allocates nor locks.
    #[inline]
    pub fn pick<L: LoadView + ?Sized>(&self, load: &L, request: &PickRequest<'_>) -> Option<usize> {
        let (rotation, weights) = (&self.rotation, &self.weights[..]);
        self.rule.pick(&Pick { rotation, weights, load, request })
    }

    /// What this balancer looks at besides requests in flight.
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// Whether [`on_dispatch`](Balancer::on_dispatch) and [`on_complete`](Balancer::on_complete) do
    /// anything. If not, the pool need not call them nor keep cells.
    pub fn keeps_cells(&self) -> bool {
        self.wants.cells
    }

    /// An endpoint's new cell when a request is dispatched to it, from its old one. Cells start at 0.
    #[inline]
    pub fn on_dispatch(&self, cell: u64, now: Tick) -> u64 {
        self.rule.on_dispatch(cell, now)
    }

    /// The new cell of the endpoint at `index` when a request it had is completed or has failed,
    /// from its old one.
    /// A request that was cancelled says nothing about the endpoint: not called for it.
    #[inline]
    pub fn on_complete<L: LoadView + ?Sized>(
        &self,
        cell: u64,
        index: usize,
        completion: &Completion,
        load: &L,
    ) -> u64 {
        self.rule.on_complete(cell, index, completion, load)
    }

    /// What the pool has to show as [`LoadView::summary`] from now on, for one whose
    /// [`wants`](Balancer::wants) say so: to be asked about once every 100 ms. Off the hot path:
    /// O(n log n), allocates.
    pub fn summarise<L: LoadView + ?Sized>(&self, load: &L, now: Tick) -> u64 {
        let members = self.rotation.shares().iter().enumerate();
        let members = members.filter(|(_, share)| **share > 0).map(|(index, _)| index);
        self.rule.summarise(members, load, now)
    }

    /// The latency that a cell holds, for algorithms that keep one; none before the first answer.
    pub fn latency(&self, cell: u64, now: Tick, summary: u64) -> Option<Duration> {
        self.rule.latency(cell, now, summary)
    }

    /// What a pick compares of this endpoint; none when it is no candidate, or the pick does not get
    /// to it. For explaining: draws a ticket where a pick would, so hand it a counter that stays
    /// where it is. Off the hot path.
    pub fn score<L: LoadView + ?Sized>(
        &self,
        load: &L,
        request: &PickRequest<'_>,
        index: usize,
    ) -> Option<Score> {
        let (rotation, weights) = (&self.rotation, &self.weights[..]);
        let pick = Pick { rotation, weights, load, request };
        pick.is_candidate(index).then(|| self.rule.score(&pick, index)).flatten()
    }

    /// The flat form, for algorithms that have one.
    pub fn table(&self) -> Option<Table<'_>> {
        self.rule.table(&self.rotation)
    }

    /// How many picks of one full cycle of the round robin each endpoint of the list gets; 0 for
    /// those that were not eligible. Weights that need a longer cycle than 65,536 are rounded: this
    /// is what they were rounded to.
    pub fn shares(&self) -> &[u32] {
        self.rotation.shares()
    }

    pub(crate) fn rule(&self) -> &Compiled {
        &self.rule
    }

    pub(crate) fn rotation(&self) -> &Rotation {
        &self.rotation
    }
}

/// How a request ended, for algorithms that learn from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The moment it was settled.
    pub now: Tick,
    /// From its dispatch to its end.
    pub elapsed: Duration,
    /// From its dispatch to the first byte of the answer, if one came.
    pub first_byte: Option<Duration>,
    /// Whether the endpoint failed it: no answer, a broken one, or a 5xx.
    pub failed: bool,
}
