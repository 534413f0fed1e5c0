//! What a failed request means for its endpoint: counted, weighed, and put in force at once where it is
//! enough. The weighing itself is in [`Suspects`](subak_health::Suspects).
//!
//! Called for failures only, by the worker that saw one; O(1), but for a look at [`OTHERS_MOST`] other
//! endpoints at the beginning of a row of failures and where a row is long enough to be judged.

use subak_base::{BitSet, Tick};
use subak_health::{Client, Others, Sample, Scene};

use crate::back_off::Entry;
use crate::control::Control;
use crate::pool::Pool;

/// Other endpoints that one is compared with, at the most.
const OTHERS_MOST: usize = 64;

/// A row of failures that has not sufficed by then is looked at again after as many more.
const LONG_ROW: u32 = 64;

impl Pool {
    /// A request failed here in some other way than those below.
    #[cold]
    pub(crate) fn failed(&self, index: usize, client: Client, now: Tick) {
        let row = self.members[index].endpoint.count_failure();
        let mut control = self.continuing.control();
        self.note(&mut control, index, (client, row), now);
        let is_news = self.eject(&mut control, index, row, now);
        drop(control);
        if is_news {
            self.refresh(now);
        }
    }

    /// A request broke here before the first byte of a response.
    #[cold]
    pub(crate) fn broke(&self, index: usize, client: Client, entry: Entry, now: Tick) {
        let row = self.members[index].endpoint.count_failure();
        let mut control = self.continuing.control();
        let Some(place) = self.note(&mut control, index, (client, row), now) else { return };
        if entry == Entry::Trial {
            self.members[index].endpoint.back_off.broken_by(client);
        }
        let is_enough = control.suspects.broke(place, &self.scene(index, now), now);
        let is_out = (is_enough || entry == Entry::Trial) && self.leave_out(index, entry, now);
        let is_news = self.eject(&mut control, index, row, now);
        drop(control);
        if is_out || is_news {
            self.refresh(now);
        }
    }

    /// A request took too long here.
    #[cold]
    pub(crate) fn late(&self, index: usize, client: Client, now: Tick) {
        self.members[index].endpoint.count_late();
        let mut control = self.continuing.control();
        if let Some(place) = control.place(self, index) {
            control.suspects.late(place, client, now);
        }
    }

    /// A request that [broke](crate::Outcome::Broken) at these endpoints was answered by another one:
    /// it is them, and not the request.
    #[cold]
    pub fn confirm(&self, broken: &BitSet, now: Tick) {
        let mut is_out = false;
        let mut control = self.continuing.control();
        for index in broken.iter() {
            let Some(place) = control.place(self, index) else { continue };
            is_out |= control.suspects.confirmed(place, &self.scene(index, now))
                && !self.members[index].endpoint.back_off.has_begun()
                && self.leave_out(index, Entry::Open, now);
        }
        drop(control);
        if is_out {
            self.refresh(now);
        }
    }

    /// A request broke at all of these endpoints: it is as likely the request as they are.
    #[cold]
    pub fn withdraw(&self, broken: &BitSet) {
        let mut control = self.continuing.control();
        for index in broken.iter() {
            if let Some(place) = control.place(self, index) {
                control.suspects.withdrawn(place);
            }
        }
    }

    /// An endpoint has ended its back-off: it takes its part again, and that is told.
    #[cold]
    pub(crate) fn came_back(&self, index: usize, now: Tick) {
        let mut control = self.continuing.control();
        if control.is_of(self) {
            let fault = self.members[index].endpoint.back_off.fault();
            let change = control.standings[index].look(fault, now);
            let event = control.changed(index, change);
            event.into_iter().for_each(|event| control.keep(event));
        }
        drop(control);
        self.refresh(now);
        // Who waits because nobody was there need not wait for a balancer.
        self.queue().notify();
    }

    /// Says of what an endpoint has counted whether it is to be doubted.
    pub(crate) fn doubt(
        &self,
        control: &mut Control,
        index: usize,
        sample: &mut Sample,
        now: Tick,
    ) {
        let Some(spec) = &self.spec.eject else { return };
        // Who may eject all of a pool does not ask how others do.
        if spec.max_share_per_mille >= 1000 {
            return;
        }
        let threshold = spec.consecutive.map_or(u32::MAX, |count| count.get());
        if sample.consecutive >= threshold {
            let scene = self.scene(index, now);
            sample.row_is_doubtful = !control.suspects.row_speaks(index, &scene, now);
        }
        let is_mixed = self.members[index].endpoint.is_mixed(now);
        sample.share_is_doubtful = !control.suspects.share_speaks(index, spec, is_mixed, now);
    }

    /// Notes a failure; answers the endpoint's place with whoever knows of it, which may be a later
    /// generation of the pool.
    fn note(
        &self,
        control: &mut Control,
        index: usize,
        (client, row): (Client, u32),
        now: Tick,
    ) -> Option<usize> {
        let place = control.place(self, index)?;
        let mut scene = Scene::default();
        scene.sample.consecutive = row;
        if row <= 1 {
            scene.others = self.others(index);
        }
        control.suspects.failed(place, client, &scene, now);
        Some(place)
    }

    /// Ejects an endpoint whose row of failures is full; answers whether anything changed by that.
    fn eject(&self, control: &mut Control, index: usize, row: u32, now: Tick) -> bool {
        // Another generation decides with its next tick, by the same counters.
        if !control.is_of(self) {
            return false;
        }
        let threshold = self.spec.eject.as_ref().and_then(|spec| spec.consecutive);
        let is_full = threshold.is_some_and(|threshold| row >= threshold.get());
        // Where all fail, rows grow for ever and say ever less.
        if !is_full || (row > LONG_ROW && !row.is_multiple_of(LONG_ROW)) {
            return false;
        }
        let mut sample = self.members[index].endpoint.sample();
        self.doubt(control, index, &mut sample, now);
        let Some(mut ejections) = control.ejections.take() else { return false };
        ejections.failed(index, &sample, now, &mut control.changes);
        control.ejections = Some(ejections);
        let is_news = !control.changes.is_empty();
        control.apply_ejections(now);
        is_news
    }

    /// Puts an endpoint into back-off, unless it is the last that takes work.
    fn leave_out(&self, index: usize, entry: Entry, now: Tick) -> bool {
        let compiled = self.compiled.load();
        let mut others = compiled.outlook.reserve.iter().filter(|other| *other != index);
        let is_last = !others.any(|other| self.members[other].endpoint.is_open(now));
        let back_off = &self.members[index].endpoint.back_off;
        if is_last && entry == Entry::Open {
            return false;
        }
        back_off.failed(&self.spec.back_off, (entry, false), now);
        true
    }

    fn scene(&self, index: usize, now: Tick) -> Scene {
        let endpoint = &self.members[index].endpoint;
        Scene {
            sample: endpoint.sample(),
            others: self.others(index),
            is_mixed: endpoint.is_mixed(now),
        }
    }

    /// What the others have done, those that come next in the list.
    fn others(&self, index: usize) -> Others {
        let len = self.members.len();
        let places = (1..len.min(OTHERS_MOST + 1)).map(|step| (index + step) % len);
        places.fold(Others::default(), |sum, place| {
            let (completed, failed) = self.members[place].endpoint.ended();
            Others { completed: sum.completed + completed, failed: sum.failed + failed }
        })
    }
}
