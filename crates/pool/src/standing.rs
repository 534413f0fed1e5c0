//! What the control side knows of one endpoint: its layers of health, what was set on it, and since
//! when it grows into its share.
//!
//! Kept by identity as long as the endpoint stays in its pool. Touched by the control side only (and
//! by a request whose failure ejects its endpoint), under the pool's control lock.

use subak_balance::weights::{Factor, Layers as Weights};
use subak_base::{Rng, Tick, Weight};
use subak_health::{
    Admin, Agent, AgentReply, AgentSpec, Availability, EjectionReason, Fault, Layers, ProbeResult,
    ProbeSpec, ProbeState, Reason, Run, SlowStart, State, Transition,
};

use crate::spec::EndpointSpec;

/// A change of an endpoint's state.
pub(crate) type Change = Transition<State, Reason>;

/// Slow start moves in steps of this many 1/1024: sequences of round robin stay short, and a balancer
/// is compiled some thirty times a ramp, not with every tick.
const RAMP_STEP: u32 = 32;

/// One endpoint, as the control side sees it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) availability: Availability,
    pub(crate) probe: Option<ProbeState>,
    pub(crate) agent: Option<Agent>,
    /// The weight that was set by API.
    pub(crate) operator: Option<Weight>,
    /// What the weigher makes of the endpoint's reports.
    pub(crate) weigher: Factor,
}

/// When an endpoint is asked, and by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// By a probe.
    Probe,
    /// Through its agent.
    Agent,
}

/// How endpoints of a pool are asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Questions {
    pub(crate) probe: Option<ProbeSpec>,
    pub(crate) agent: Option<AgentSpec>,
}

impl Standing {
    /// An endpoint that has just become known.
    pub(crate) fn new(file: Admin, questions: &Questions, now: Tick, random: &mut Rng) -> Standing {
        let probe = questions.probe.as_ref();
        let probe = probe.map(|spec| ProbeState::new(spec, now, random.next_u64()));
        let agent = questions.agent.as_ref();
        let agent = agent.map(|spec| Agent::new(spec, now, random.next_u64()));
        let said = probe.as_ref().map(|probe| (probe.health(), probe.reason().clone()));
        let operational = agent.as_ref().map(Agent::operational);
        let layers = Layers { file, operational, probe: said, ..Layers::default() };
        Standing {
            availability: Availability::new(layers, now),
            probe,
            agent,
            operator: None,
            weigher: Factor::NEUTRAL,
        }
    }

    /// Its state at the last look.
    pub(crate) fn state(&self) -> State {
        self.availability.verdict().state
    }

    /// The same for whoever sees back-offs as they are at this moment: an endpoint in back-off is ready
    /// but for that.
    pub(crate) fn work_state(&self) -> State {
        match self.state() {
            State::BackOff => State::Ready,
            state => state,
        }
    }

    /// Its state if the file wanted this of it.
    pub(crate) fn state_with(&self, file: Admin, now: Tick) -> State {
        if self.availability.layers().file == file {
            return self.work_state();
        }
        let layers = Layers { file, back_off: None, ..self.availability.layers().clone() };
        Availability::new(layers, now).verdict().state
    }

    /// Takes over what a new configuration says. What was observed and what was set by API stays.
    pub(crate) fn adopt(
        &mut self,
        file: Admin,
        questions: (&Questions, &Questions),
        now: Tick,
        random: &mut Rng,
    ) -> Option<Change> {
        let (before, after) = questions;
        if before.probe != after.probe {
            match (&mut self.probe, &after.probe) {
                (Some(state), Some(spec)) => state.spec_changed(spec, now, random.next_u64()),
                (state, spec) => {
                    *state =
                        spec.as_ref().map(|spec| ProbeState::new(spec, now, random.next_u64()));
                }
            }
        }
        match (&self.agent, &after.agent) {
            (Some(_), None) => self.agent = None,
            (None, Some(spec)) => self.agent = Some(Agent::new(spec, now, random.next_u64())),
            _ => {}
        }
        self.tell(after, now, random.next_u64(), |layers| layers.file = file)
    }

    /// What was set by API; none takes it back.
    pub(crate) fn set_admin(
        &mut self,
        wanted: Option<Admin>,
        questions: &Questions,
        now: Tick,
        random: u64,
    ) -> Option<Change> {
        self.tell(questions, now, random, |layers| layers.api = wanted)
    }

    /// Ejects it until then, or takes it back.
    pub(crate) fn eject(
        &mut self,
        ejection: Option<(Tick, EjectionReason)>,
        questions: &Questions,
        now: Tick,
    ) -> Option<Change> {
        self.tell(questions, now, 0, |layers| layers.ejection = ejection)
    }

    /// Looks at the clock and at the back-off: an ejection or that may be over.
    pub(crate) fn look(&mut self, back_off: Option<Fault>, now: Tick) -> Option<Change> {
        if self.availability.layers().back_off == back_off {
            return self.availability.look(now);
        }
        self.availability.change(now, |layers| layers.back_off = back_off)
    }

    /// When it is to be asked next; never while nobody asks it. An agent is asked in maintenance too:
    /// who sent its endpoint there is to bring it back.
    pub(crate) fn next_due(&self) -> Tick {
        let probe = self.probe.as_ref().filter(|_| self.state().is_probed());
        let probe = probe.map(ProbeState::next_due);
        let agent = self.agent.as_ref().map(Agent::next_due);
        probe.into_iter().chain(agent).min().unwrap_or(Tick(u64::MAX))
    }

    /// Begins what is due.
    pub(crate) fn ask(
        &mut self,
        questions: &Questions,
        now: Tick,
        mut begun: impl FnMut(Question, Run),
    ) {
        let is_probed = self.state().is_probed();
        if let (Some(state), Some(spec)) = (&mut self.probe, &questions.probe)
            && is_probed
            && state.is_due(now)
        {
            begun(Question::Probe, state.started(spec, now));
        }
        if let (Some(agent), Some(spec)) = (&mut self.agent, &questions.agent)
            && agent.is_due(now)
        {
            begun(Question::Agent, agent.started(spec, now));
        }
    }

    /// Takes a probe's result in. Says also whether its probes have brought it up: that ends a back-off.
    pub(crate) fn probed(
        &mut self,
        questions: &Questions,
        run: Run,
        result: ProbeResult,
        now: Tick,
        random: u64,
    ) -> (bool, Option<Change>) {
        let (Some(state), Some(spec)) = (&mut self.probe, &questions.probe) else {
            return (false, None);
        };
        let was_up = state.health().is_up();
        state.finished(spec, run, result, now, random);
        let came_up = !was_up && state.health().is_up();
        let change = self.tell(questions, now, random, |layers| {
            if came_up {
                layers.back_off = None;
            }
        });
        (came_up, change)
    }

    /// Takes an agent's answer in, or that there was none. Says also whether its weight or its limit
    /// has changed, or anything else of it.
    pub(crate) fn agent_answered(
        &mut self,
        questions: &Questions,
        run: Run,
        reply: Option<&AgentReply>,
        now: Tick,
        random: u64,
    ) -> (bool, Option<Change>) {
        let (Some(agent), Some(spec)) = (&mut self.agent, &questions.agent) else {
            return (false, None);
        };
        match agent.answered(spec, run, reply, now, random) {
            true => (true, self.tell(questions, now, random, |_| {})),
            false => (false, None),
        }
    }

    /// Puts the layers together anew.
    fn tell(
        &mut self,
        questions: &Questions,
        now: Tick,
        random: u64,
        change: impl FnOnce(&mut Layers),
    ) -> Option<Change> {
        let was_probed = self.state().is_probed();
        let probe = self.probe.as_ref().map(|probe| (probe.health(), probe.reason().clone()));
        let (admin, operational, reason) = match &self.agent {
            Some(agent) => (agent.admin(), Some(agent.operational()), agent.reason().cloned()),
            None => (Admin::Ready, None, None),
        };
        // Whoever comes out of maintenance is another than who went in.
        let mut wanted = self.availability.layers().clone();
        change(&mut wanted);
        wanted.agent = admin;
        let stays_out = wanted.admin().0 == Admin::Maintenance;
        let probe = match (&mut self.probe, &questions.probe) {
            (Some(state), Some(spec)) if !was_probed && !stays_out => {
                state.reset(spec, now, random);
                Some((state.health(), state.reason().clone()))
            }
            _ => probe,
        };
        wanted.operational = operational;
        wanted.agent_reason = reason;
        wanted.probe = probe;
        self.availability.change(now, |layers| *layers = wanted)
    }

    /// How far it has come back, in 1/1024.
    pub(crate) fn ramp(&self, slow_start: Option<&SlowStart>, now: Tick) -> u32 {
        let since = self.availability.ramps_since();
        let (Some(slow_start), Some(since)) = (slow_start, since) else { return Factor::UNIT };
        let share = slow_start.share(since, now);
        (share / RAMP_STEP * RAMP_STEP).max(RAMP_STEP)
    }

    /// What its agent makes of its weight, in hundredths.
    pub(crate) fn percent(&self) -> u32 {
        self.agent.as_ref().map_or(100, Agent::weight_percent)
    }

    /// The layers of its weight, slow start left out.
    pub(crate) fn weights(&self, configured: Weight, takes_changing: bool) -> Weights {
        let plain = Weights { configured, operator: self.operator, ..Weights::default() };
        match self.percent() {
            0 => Weights { operator: Some(Weight::ZERO), ..plain },
            _ if !takes_changing => plain,
            percent => {
                let product = u64::from(self.weigher.get()) * u64::from(percent) / 100;
                Weights { weigher: Factor::from_1024ths(product), ..plain }
            }
        }
    }

    /// The smaller of the configured cap and the agent's; `u32::MAX` for none.
    pub(crate) fn cap(&self, spec: &EndpointSpec) -> u32 {
        let agent = self.agent.as_ref().and_then(Agent::max_in_flight);
        spec.max_in_flight.into_iter().chain(agent).min().unwrap_or(u32::MAX)
    }
}
