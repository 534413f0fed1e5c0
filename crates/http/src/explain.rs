//! Where would a request go at this listener, and why? Goes through the phases of [`life`](crate::life)
//! by the functions that they call, and does nothing.

use std::net::{IpAddr, SocketAddr};

use subak_balance::catalogue::Share;
use subak_balance::{Algorithm, KeySource};
use subak_base::{BitSet, DecisionId, Tick};
use subak_config::{HeaderEdits, HostForward};
use subak_explain::{
    Action as Does, BadQuestion, Condition, Explanation, Key as KeyTold, ListenerTold, Outcome,
    PoolTold, Question, RouteTold, Url, Verdict,
};
use subak_message::h1::{Progress, parse_request};
use subak_message::{BodyLength, Fault, HeadError, Method, RequestHead, Scheme};
use subak_net::PeerAddress;
use subak_pool::{Acquire, Candidate, ShadowKeys};

use crate::answer;
use crate::client_addr::ClientAddr;
use crate::failure::Failure;
use crate::key::{self, Ends};
use crate::limits::Asked;
use crate::plan::PoolPlan;
use crate::rewrite;
use crate::route::{Action, Route};
use crate::service::Service;
use crate::stick::Visit;

/// What an explanation needs beside the question.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// Why it arrives at this listener.
    pub why: &'a str,
    /// Whether the process serves.
    pub is_live: bool,
    /// Of the configuration in force.
    pub generation: u64,
    /// What algorithms draw by.
    pub random: u64,
    /// The moment.
    pub now: Tick,
}

impl Service {
    /// Where this request would go.
    ///
    /// # Errors
    /// [`BadQuestion`] for what is no request.
    pub fn explain(
        &self,
        question: &Question,
        url: &Url,
        circumstances: &Circumstances<'_>,
    ) -> Result<Explanation, BadQuestion> {
        let peer = PeerAddress::Inet(question.peer()?);
        let text = question.head(url)?;
        let mut head = RequestHead::new(if url.is_tls { Scheme::Https } else { Scheme::Http });
        let parsed = parse_request(&text, &self.head_limits, &mut head);
        let client = self.receive(peer, &mut head);
        let mut told = Explanation {
            request: question.clone(),
            is_live: circumstances.is_live,
            generation: circumstances.generation,
            client: client.ip.map(|ip| ip.to_string()),
            listener: ListenerTold { name: self.name.clone(), why: circumstances.why.to_owned() },
            routes: Vec::new(),
            limits: Vec::new(),
            action: None,
            outcome: answered(&Failure::NoRoute),
            pool: None,
            edits: Vec::new(),
            notes: Vec::new(),
        };
        let parsed = match parsed {
            Ok(Progress::Complete { framing, .. })
                if framing.nominates && self.guard.is_nominated(&head.fields) =>
            {
                Err(HeadError { fault: Fault::ConnectionNames, offset: 0 })
            }
            Ok(_) if client.is_unreadable => {
                Err(HeadError { fault: Fault::ClientUnreadable, offset: 0 })
            }
            parsed => parsed.map(drop),
        };
        if let Err(error) = parsed {
            told.outcome = answered(&Failure::BadHead(error));
            if error.fault == Fault::PathEncodedSlash {
                told.notes.push(
                    "encoded_slashes = \"keep\" or \"decode\" of the listener lets %2F in.".into(),
                );
            }
            return Ok(told);
        }
        if head.compared_path() != head.path() {
            let path = head.compared_path().escape_ascii();
            told.notes.push(format!("Routes and limits compare the path {path}."));
        }
        if client.ip != client.peer {
            told.notes.push(format!(
                "{} is a trusted proxy: the client is whom it names in {}",
                question.client.as_deref().unwrap_or("127.0.0.1"),
                self.trust.proxies().field.name()
            ));
        }
        if self.refuses(head.method) {
            told.outcome = answered(&Failure::MethodRefused);
            return Ok(told);
        }
        let gate = self.gate.as_ref().map_or(Ok(()), |gate| gate.admits(client.peer));
        if gate.is_err() {
            told.outcome = Outcome::Closed { reason: "its network may not in".to_owned() };
            return Ok(told);
        }
        let body = BodyLength::None;
        let asked = Asked { head: &head, client: client.ip, body, now: circumstances.now, nth: 0 };
        let mut refused = Ok(());
        if let Some(bounds) = &self.bounds {
            refused = bounds.explain(&asked, &mut told.limits);
        }
        told.routes = self.tell(&head, &client);
        let Some(route) = self.route(&head, client.ip) else { return Ok(told) };
        told.action = Some(does(route, &head));
        if let Some(bounds) = &route.bounds {
            let here = bounds.explain(&asked, &mut told.limits);
            refused = refused.and(here);
        }
        if let Err(failure) = refused {
            told.outcome = answered(&failure);
            return Ok(told);
        }
        if !matches!(route.action, Action::Pool(_) | Action::Split(_)) {
            tell_edits("answer", &route.answer_edits, &mut told.edits);
        }
        match &route.action {
            Action::Redirect(redirect) => {
                let reason = "the route sends the client elsewhere".to_owned();
                told.outcome = Outcome::Answered { status: redirect.status, reason };
            }
            Action::Respond(respond) => {
                let reason = "the route answers at once".to_owned();
                told.outcome = Outcome::Answered { status: respond.status, reason };
            }
            Action::Pool(plan) => {
                let ip = url.host.parse::<IpAddr>().ok();
                let port = url.port.unwrap_or(if url.is_tls { 443 } else { 80 });
                let ends = Ends { peer, local: ip.map(|ip| SocketAddr::new(ip, port)) };
                self.explain_pool(plan, (&mut head, &client, &ends), circumstances, &mut told);
            }
            Action::Split(split) => {
                let ends = Ends { peer, local: None };
                let random = circumstances.random;
                let (plan, _) = split.choose(&mut head, (&client, &ends), &mut Vec::new(), random);
                told.notes.push(format!("The split gives this request to {}.", plan.pool.name()));
                self.explain_pool(plan, (&mut head, &client, &ends), circumstances, &mut told);
            }
        }
        Ok(told)
    }

    fn tell(&self, head: &RequestHead, client: &ClientAddr) -> Vec<RouteTold> {
        let mut is_taken = false;
        let mut tell = |index: Option<usize>, route: &Route| {
            let told = route.tell(head, client.ip).into_iter();
            let condition = |(condition, holds): (&subak_config::Condition, bool)| Condition {
                text: condition.to_string(),
                holds,
            };
            let conditions: Vec<Condition> = told.map(condition).collect();
            let verdict = Verdict::of(&conditions, is_taken);
            is_taken |= verdict == Verdict::Taken;
            RouteTold { index, conditions, verdict, action: does(route, head) }
        };
        let (routes, fallback) = self.all_routes();
        let own: Vec<RouteTold> =
            routes.iter().zip(1..).map(|(route, place)| tell(Some(place), route)).collect();
        let fallback = fallback.map(|route| tell(None, route));
        own.into_iter().chain(fallback).collect()
    }

    fn explain_pool(
        &self,
        plan: &PoolPlan,
        (head, client, ends): (&mut RequestHead, &ClientAddr, &Ends),
        circumstances: &Circumstances<'_>,
        told: &mut Explanation,
    ) {
        let Circumstances { random, now, is_live, .. } = *circumstances;
        let mut kept = Vec::new();
        let source = plan.pool.algorithm().key();
        let key = source.map_or(subak_balance::Key::None, |source| {
            key::extract(source, head, client, ends, &mut kept)
        });
        let mut shadow_keys = ShadowKeys::default();
        let mut scratch = Vec::new();
        let who = (client, ends);
        key::collect_beside(&plan.pool, head, who, &mut scratch, &mut shadow_keys);
        let visit = match &plan.stick {
            None => Visit::default(),
            Some(stick) => stick.visit(&mut head.fields, client.ip),
        };
        let request = Acquire {
            key,
            shadow_keys: &shadow_keys,
            random,
            now,
            in_turn: true,
            stick: visit.home(),
            client: visit.client,
            from: client.ip,
            decision: None::<DecisionId>,
        };
        let trace = plan.pool.explain(&request, &BitSet::EMPTY);
        let key = source.map(|source| KeyTold { source: source.to_string(), value: value(key) });
        let pool = PoolTold::of(&plan.pool, &trace, key, now);
        told.outcome = pool.outcome(trace.given.err());
        if let Some(Err(closed)) = plan.pool.circuit().map(|circuit| circuit.look(now)) {
            told.outcome = answered(&Failure::Circuit(closed));
        }
        told.pool = Some(pool);
        match &plan.host {
            HostForward::Preserve => {}
            HostForward::Endpoint => told.edits.push("request: Host becomes the endpoint's".into()),
            HostForward::Literal(host) => {
                told.edits.push(format!("request: Host becomes {}", host.as_str()));
            }
        }
        if let Some(rewrite) = &plan.rewrite {
            let mut target = Vec::new();
            match rewrite::target(rewrite, head, &mut target) {
                Ok(true) => {
                    let target = target.escape_ascii();
                    told.edits.push(format!("request: the path becomes {target}"));
                }
                Ok(false) => {}
                Err(failure) => told.outcome = answered(&failure),
            }
        }
        tell_edits("request", &plan.request_edits, &mut told.edits);
        tell_edits("answer", &plan.answer_edits, &mut told.edits);
        if source == Some(&KeySource::FiveTuple) {
            told.notes.push(
                "The key is the connection itself: another connection may go elsewhere.".into(),
            );
        }
        if matches!(plan.pool.algorithm().traits().share, Share::ByChance | Share::ByDraw) {
            told.notes
                .push("The algorithm draws by chance: the next request may go elsewhere.".into());
        }
        told.notes.extend(rounding(plan.pool.algorithm(), &trace.candidates));
        let nothing = "Nothing was sent, drawn or counted; the next request may find it otherwise.";
        let offline = "From the configuration alone: every endpoint is taken to be ready unless it \
                       says otherwise, and nothing to be under way. Ask the process that serves \
                       (without --config) how it is now.";
        told.notes.push(if is_live { nothing } else { offline }.into());
        if plan.stick.is_some() && !is_live {
            told.notes.push(
                "Where clients belong is known to the process that serves; here nobody belongs \
                 anywhere unless keys_file vouches for a cookie."
                    .into(),
            );
        }
    }
}

/// Whose share of the requests is clearly another than its weight, of those that can be picked.
fn rounding(algorithm: &Algorithm, candidates: &[Candidate]) -> Option<String> {
    let weight = |one: &Candidate| if one.excluded.is_none() { one.weight.get() } else { 0 };
    let weights: Vec<u64> = candidates.iter().map(weight).collect();
    let roundings = algorithm.roundings(&weights);
    let worst = roundings.first()?;
    let name = &candidates[worst.index].name;
    let all = worst.places.1;
    Some(format!("Weights are rounded to {all} equal parts: {name} {worst}."))
}

/// What Subak answers to a failure.
fn answered(failure: &Failure) -> Outcome {
    Outcome::Answered { status: failure.status().unwrap_or(400), reason: failure.reason() }
}

fn does(route: &Route, head: &RequestHead) -> Does {
    match &route.action {
        Action::Pool(plan) => Does::Pool { pool: plan.pool.name().to_owned() },
        Action::Split(split) => {
            Does::Split { pools: split.sides().map(|plan| plan.pool.name().to_owned()).collect() }
        }
        Action::Redirect(redirect) => {
            let to = String::from_utf8_lossy(&answer::location(redirect, head)).into_owned();
            Does::Redirect { status: redirect.status, to }
        }
        Action::Respond(respond) => Does::Respond { status: respond.status },
    }
}

fn value(key: subak_balance::Key<'_>) -> Option<String> {
    match key {
        subak_balance::Key::None => None,
        subak_balance::Key::Address(ip) => Some(ip.to_string()),
        subak_balance::Key::Bytes(bytes) => Some(bytes.escape_ascii().to_string()),
    }
}

/// One sentence for each change.
fn tell_edits(whose: &str, edits: &[HeaderEdits], told: &mut Vec<String>) {
    for edit in edits {
        told.extend(edit.remove.iter().map(|name| format!("{whose}: {name} is removed")));
        let set = edit.set.iter();
        told.extend(set.map(|(name, value)| format!("{whose}: {name} is set to {value}")));
        let add = edit.add.iter();
        told.extend(add.map(|(name, value)| format!("{whose}: {name} is added: {value}")));
    }
}

impl Service {
    /// Whether requests with this method go nowhere.
    #[inline]
    pub(crate) fn refuses(&self, method: Method) -> bool {
        match method {
            Method::Connect => true,
            Method::Trace => !self.allow_trace,
            _ => false,
        }
    }
}
