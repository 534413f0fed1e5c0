//! What the agent of one endpoint has said so far, and when to ask again.
//!
//! A reply changes what it mentions; the rest stays as it was last said, so only the agent takes back
//! what the agent did. An agent that does not answer changes nothing either: whether the endpoint can
//! be reached is the probes' business, and an agent that was stopped after it said `down` has said
//! `down`. O(1).

use std::sync::Arc;
use std::time::Duration;

use subak_base::Tick;

use crate::agent_check::{AgentReply, Operational};
use crate::schedule::{Run, Schedule, jittered};
use crate::verdict::Admin;

/// How an agent is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentSpec {
    /// From one question's start to the next.
    pub interval: Duration,
    /// For connecting and reading a line.
    pub timeout: Duration,
    /// How much the interval varies, either way, in thousandths of it.
    pub jitter_per_mille: u32,
}

impl Default for AgentSpec {
    fn default() -> AgentSpec {
        AgentSpec {
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            jitter_per_mille: 100,
        }
    }
}

/// The agent of one endpoint, seen from here.
#[derive(Clone, Debug)]
pub struct Agent {
    admin: Admin,
    operational: Operational,
    reason: Option<Arc<str>>,
    weight_percent: u32,
    max_in_flight: Option<u32>,
    heard: Option<Tick>,
    schedule: Schedule,
}

impl Agent {
    /// An agent that has said nothing. It is asked for the first time somewhere in the first second, or
    /// in the first interval where that is shorter.
    pub fn new(spec: &AgentSpec, now: Tick, random: u64) -> Agent {
        let first = spec.interval.min(Duration::from_secs(1));
        Agent {
            admin: Admin::Ready,
            operational: Operational::Up,
            reason: None,
            weight_percent: 100,
            max_in_flight: None,
            heard: None,
            schedule: Schedule::new(first, now, random),
        }
    }

    /// What it wants administratively.
    pub fn admin(&self) -> Admin {
        self.admin
    }

    /// Whether the service works.
    pub fn operational(&self) -> Operational {
        self.operational
    }

    /// What it gave as the reason for that.
    pub fn reason(&self) -> Option<&Arc<str>> {
        self.reason.as_ref()
    }

    /// The weight in hundredths of the configured one. 0: no new work, as with any weight of 0.
    pub fn weight_percent(&self) -> u32 {
        self.weight_percent
    }

    /// The limit of requests in flight, if it set one.
    pub fn max_in_flight(&self) -> Option<u32> {
        self.max_in_flight
    }

    /// When it last answered.
    pub fn heard(&self) -> Option<Tick> {
        self.heard
    }

    /// Whether it is to be asked now.
    pub fn is_due(&self, now: Tick) -> bool {
        self.schedule.is_due(now)
    }

    /// When it is to be asked next, or when the question under way is given up.
    pub fn next_due(&self) -> Tick {
        self.schedule.next_due()
    }

    /// Begins a question; to be ended by [`Agent::answered`] with the run that is returned.
    pub fn started(&mut self, spec: &AgentSpec, now: Tick) -> Run {
        self.schedule.start(spec.timeout, now)
    }

    /// Takes an answer in, or that there was none. Says whether anything changed. An answer to a
    /// question that is not the latest is ignored.
    pub fn answered(
        &mut self,
        spec: &AgentSpec,
        run: Run,
        reply: Option<&AgentReply>,
        now: Tick,
        random: u64,
    ) -> bool {
        if !self.schedule.end(run) {
            return false;
        }
        self.schedule.follow(run, jittered(spec.interval, spec.jitter_per_mille, random), now);
        let Some(reply) = reply else { return false };
        self.heard = Some(now);
        self.take_in(reply)
    }

    fn take_in(&mut self, reply: &AgentReply) -> bool {
        let mut changed = set(&mut self.admin, reply.admin);
        changed |= set(&mut self.weight_percent, reply.weight_percent);
        let limit = reply.max_in_flight.map(|limit| (limit > 0).then_some(limit));
        changed |= set(&mut self.max_in_flight, limit);
        if reply.operational.is_some() {
            changed |= set(&mut self.operational, reply.operational);
            if self.reason.as_deref() != reply.reason.as_deref() {
                self.reason = reply.reason.as_deref().map(Arc::from);
                changed = true;
            }
        }
        changed
    }
}

fn set<T: PartialEq>(value: &mut T, said: Option<T>) -> bool {
    match said {
        Some(said) if said != *value => {
            *value = said;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets an agent say one line after another, a question each.
    fn say(agent: &mut Agent, line: Option<&str>) -> bool {
        let spec = AgentSpec::default();
        let now = agent.next_due();
        assert!(agent.is_due(now));
        let run = agent.started(&spec, now);
        let reply = line.map(|line| AgentReply::parse(line.as_bytes()).0);
        agent.answered(&spec, run, reply.as_ref(), now, 1 << 63)
    }

    #[test]
    fn what_is_not_said_is_not_changed() {
        let mut agent = Agent::new(&AgentSpec::default(), Tick(0), 0);
        assert!(say(&mut agent, Some("drain 40% maxconn:9 down # disk")));
        let state = |agent: &Agent| {
            let reason = agent.reason().map(|reason| reason.to_string());
            (agent.admin(), agent.operational(), reason, agent.weight_percent())
        };
        let disk = Some("disk".to_owned());
        assert_eq!(state(&agent), (Admin::Drain, Operational::Down, disk.clone(), 40));
        assert!(!say(&mut agent, None), "no answer says nothing");
        assert!(!say(&mut agent, Some("40%")));
        assert_eq!(state(&agent), (Admin::Drain, Operational::Down, disk.clone(), 40));
        assert!(say(&mut agent, Some("ready")));
        assert_eq!(state(&agent), (Admin::Ready, Operational::Down, disk, 40));
        assert!(say(&mut agent, Some("up")));
        assert_eq!(state(&agent), (Admin::Ready, Operational::Up, None, 40));
        assert_eq!(agent.max_in_flight(), Some(9));
        assert!(say(&mut agent, Some("maxconn:0 100%")));
        assert_eq!((agent.max_in_flight(), agent.weight_percent()), (None, 100));
    }

    #[test]
    fn it_is_asked_at_its_interval_and_an_old_answer_is_ignored() {
        let spec = AgentSpec::default();
        let mut agent = Agent::new(&spec, Tick(0), 0);
        assert_eq!(agent.heard(), None);
        assert!(say(&mut agent, Some("50%")));
        assert_eq!(agent.heard(), Some(Tick(0)));
        assert_eq!(agent.next_due(), Tick(0).after(spec.interval));
        let lost = agent.started(&spec, agent.next_due());
        let now = agent.next_due();
        assert_eq!(now.since(lost.started()), spec.timeout * 2, "then it is given up");
        let run = agent.started(&spec, now);
        let reply = AgentReply::parse(b"10%").0;
        assert!(!agent.answered(&spec, lost, Some(&reply), now, 0));
        assert!(agent.answered(&spec, run, Some(&reply), now, 0));
    }
}
