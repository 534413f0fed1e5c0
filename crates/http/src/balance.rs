//! Which endpoints a request is tried at: acquires one after another until one has answered, as far as
//! that is safe and allowed. The one place where retrying is decided.

use subak_balance::Key;
use subak_base::{BitSet, DecisionId, Tick};
use subak_config::HostForward;
use subak_message::{BodyLength, Form, Known};
use subak_net::{are_used_up, now};
use subak_pool::{Acquire, Answered, Ending, Lease, Outcome, Refusal, ShadowKeys};
use subak_telemetry as telemetry;

use crate::attempt::{Attempt, try_endpoint};
use crate::client_addr::ClientAddr;
use crate::edit;
use crate::evidence::Evidence;
use crate::exchange::ClientSide;
use crate::failure::{ClientFault, Failure};
use crate::life::{Arrived, Place};
use crate::limits::Told;
use crate::line::Line;
use crate::plan::PoolPlan;
use crate::replay::Replay;
use crate::rewrite;
use crate::split::SplitCookie;
use crate::stick::Visit;
use crate::worker::Heads;

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) address: &'a ClientAddr,
    /// What the pool's algorithm recognises the client by.
    pub(crate) key: Key<'a>,
    pub(crate) decision: Option<DecisionId>,
    /// What the answer tells the client of its side of a split.
    pub(crate) side: Option<SplitCookie<'a>>,
    /// And of what a rate leaves it.
    pub(crate) told: Option<&'a Told>,
    /// When limits were asked a moment ago, where there are any.
    pub(crate) entered: Option<Tick>,
}

/// Tries one endpoint after another until one has answered, as far as that is safe and allowed.
pub(crate) async fn balance<C: ClientSide>(
    client: &mut C,
    arrived: &Arrived,
    who: &Who<'_>,
    heads: &mut Heads,
    plan: &PoolPlan,
    place: &Place<'_>,
) -> Result<(), Failure> {
    let own = place.went.route.get().and_then(|route| route.bounds.as_ref()?.body());
    let most = own.unwrap_or(place.service.limits.body_bytes);
    if let (BodyLength::Known(length), Some(most)) = (arrived.body, most)
        && length > most
    {
        return Err(Failure::Client(ClientFault::BodyTooLarge));
    }
    if are_used_up() {
        return Err(Failure::NoMemory);
    }
    let visit = match &plan.stick {
        None => Visit::default(),
        Some(stick) => stick.visit(&mut heads.request.fields, who.address.ip),
    };
    let service = place.service;
    let (trusted, say) = (service.trust.proxies(), service.forwarded);
    edit::tell_client(&mut heads.request, who.address, trusted, say, &mut heads.text);
    edit::apply_to_request(&mut heads.request.fields, &plan.request_edits);
    if let HostForward::Literal(host) = &plan.host
        && let Err(error) = heads.request.fields.set_known(Known::Host, host.as_str().as_bytes())
    {
        tracing::debug!(%error, "the configured Host was left out");
    }
    heads.text.clear();
    let is_rewritten = match &plan.rewrite {
        None => false,
        Some(rewrite) => {
            let fits = rewrite::target(rewrite, &heads.request, &mut heads.text)?;
            let stripped = rewrite.stripped().filter(|_| fits);
            if let (Some(prefix), true) = (stripped, place.service.forwarded.x_forwarded) {
                edit::tell_prefix(&mut heads.request.fields, prefix);
            }
            fits
        }
    };
    if !is_rewritten && place.service.forward_normalized && heads.request.form() != Form::Asterisk {
        heads.text.extend_from_slice(heads.request.normal_path());
        if let Some(query) = heads.request.query() {
            heads.text.push(b'?');
            heads.text.extend_from_slice(query);
        }
    }
    let mut body = Replay::new(arrived.body, plan.kept_body);
    let mut tried = BitSet::EMPTY;
    let mut evidence = Evidence::NONE;
    let line = Line::default();
    let mut refusal = None;
    let mut connect_left = plan.connect;
    let mut attempts = 0;
    let index = place.worker.index();
    let began = who.entered.unwrap_or_else(now);
    heads.story.began.get_or_insert(began);
    let mut moment = began;
    loop {
        let who_with_keys = (who, &heads.shadow_keys);
        let lease =
            match acquire(client, (plan, &visit), &tried, who_with_keys, (place, &line), moment)
                .await
            {
                Ok(lease) => lease,
                // Why nobody could be reached says more than that nobody came back.
                Err(Failure::NoEndpoint) => return Err(refusal.unwrap_or(Failure::NoEndpoint)),
                Err(failure) => return Err(failure),
            };
        attempts += 1;
        let story = &mut heads.story;
        story.tries += 1;
        story.endpoint = Some(lease.index());
        story.picked = Some(lease.since());
        // It stood in line, or nothing has happened since.
        story.queue += lease.since().since(moment);
        story.stick = plan.stick.as_ref().and_then(|stick| stick.stuck(&visit, &lease));
        let last = attempts >= plan.attempts;
        // An answer that would be tried elsewhere is good enough when there is no elsewhere.
        let is_call = heads.story.is_call;
        let takes_any =
            plan.retry_on.statuses.is_empty() && (!is_call || plan.retry_on.grpc.is_empty());
        let keep_any = last || takes_any || {
            tried.insert(lease.index());
            !plan.pool.has_untried(&tried)
        };
        let new_cookie = plan
            .stick
            .as_ref()
            .and_then(|stick| stick.new_cookie(&visit, (&plan.pool, &lease), &tried, moment));
        let attempt = Attempt {
            keep_any,
            is_call,
            new_cookie,
            side: who.side,
            told: who.told,
            tried: &tried,
            connect_left,
            line: &line,
        };
        let tried_now =
            try_endpoint(client, arrived, heads, (plan, &lease), &mut body, &attempt, place).await;
        let (failure, sent) = match tried_now {
            Ok(first_byte) => {
                moment = now();
                let answered = Answered {
                    first_byte: first_byte
                        .filter(|_| plan.pool.times_answers())
                        .map(|first_byte| first_byte.since(lease.since())),
                    status_failed: heads.answer.status >= 500
                        || heads.story.code.is_some_and(|code| plan.grpc_failures.contains(code)),
                };
                if lease.is_recorded() {
                    lease.tell(Ending { status: Some(heads.answer.status), failure: None });
                }
                let (endpoint, since) = (lease.endpoint(), lease.since());
                lease.settle(Outcome::Completed(answered), moment);
                evidence.answered(&plan.pool, heads.answer.status, moment);
                heads.story.first_byte = first_byte;
                heads.story.ended = Some(moment);
                let outcome = telemetry::Outcome::of_status(heads.answer.status);
                plan.metrics.answered(index, outcome, moment.since(began));
                if outcome != telemetry::Outcome::Informational {
                    endpoint.count_answer(moment.0.saturating_sub(since.0));
                }
                return Ok(());
            }
            Err(failed) => failed,
        };
        moment = now();
        tried.insert(lease.index());
        if lease.is_recorded() {
            lease.tell(Ending { status: None, failure: Some(failure.reason().into()) });
        }
        let limit = lease.connect_limit();
        evidence.failed(lease, &failure, client.is_answered(), moment);
        // Without a connection nothing was sent: it neither counts nor draws on the budget; `tried` and
        // the time to connect bound how often it can happen.
        let refused = matches!(failure, Failure::Connect(_) | Failure::Tls(_) | Failure::NoPort(_));
        let unconnected = refused || matches!(failure, Failure::ConnectTimeout);
        if unconnected {
            attempts -= 1;
        }
        if let Failure::ConnectTimeout = failure {
            connect_left = connect_left.saturating_sub(limit.unwrap_or(plan.connect));
        }
        // Else the answer would have been forwarded.
        let paid = matches!(failure, Failure::RetryStatus(_) | Failure::RetryCall(_));
        // Whoever says "unavailable" before the first message has done nothing, and the configuration
        // takes its word for it.
        let is_undone = !sent || matches!(failure, Failure::RetryCall(_));
        let idempotent = heads.request.method.is_idempotent();
        let may_retry = !client.is_answered()
            && body.can_rewind()
            && (idempotent || is_undone)
            && is_retried(&failure, plan)
            && !connect_left.is_zero();
        let has_untried = plan.pool.has_untried(&tried);
        // Refused by all: somebody may be back in a moment.
        let is_refused = matches!(failure, Failure::Connect(_));
        if may_retry && is_refused && !has_untried && line.may_wait(plan, moment) {
            tried = BitSet::EMPTY;
            body.rewind();
            refusal = Some(failure);
            continue;
        }
        let may_retry = may_retry
            && has_untried
            && (unconnected || paid || (!last && withdraws(plan, &failure, moment)));
        if !may_retry {
            evidence.gave_up(&plan.pool);
            return Err(failure);
        }
        tracing::debug!(pool = plan.pool.name(), reason = %failure.reason(), "trying another endpoint");
        plan.metrics.retried(index);
        body.rewind();
    }
}

/// Takes a retry from the pool's budget if there is one.
fn withdraws(plan: &PoolPlan, failure: &Failure, now: Tick) -> bool {
    match failure {
        Failure::FirstByteTimeout | Failure::EndpointIdle => plan.pool.withdraw_late_retry(now),
        _ => plan.pool.withdraw_retry(now),
    }
}

/// Whether a failure is of a kind that the pool tries elsewhere.
fn is_retried(failure: &Failure, plan: &PoolPlan) -> bool {
    let on = &plan.retry_on;
    match failure {
        Failure::Connect(_) | Failure::Tls(_) | Failure::NoPort(_) | Failure::ConnectTimeout => {
            on.connect
        }
        Failure::Endpoint(_) => on.reset,
        Failure::FirstByteTimeout | Failure::EndpointIdle => on.timeout,
        Failure::RetryStatus(_) | Failure::RetryCall(_) => true,
        _ => false,
    }
}

/// A lease of an untried endpoint; stands in line while all of them are at their cap.
async fn acquire<'p, C: ClientSide>(
    client: &mut C,
    (plan, visit): (&'p PoolPlan, &Visit),
    tried: &BitSet,
    (who, shadow_keys): (&Who<'_>, &ShadowKeys),
    (place, line): (&Place<'_>, &Line<'p>),
    now: Tick,
) -> Result<Lease<'p>, Failure> {
    let request = Acquire {
        key: who.key,
        shadow_keys,
        random: place.worker.handle.random(),
        now,
        in_turn: false,
        stick: visit.home(),
        client: visit.client,
        from: who.address.ip,
        decision: who.decision,
    };
    if !line.is_out() {
        match plan.pool.acquire(&request, tried) {
            Ok(lease) => return Ok(lease),
            Err(Refusal::NoEndpoint) => {
                let may_wait = plan.pool.is_out(now) && line.may_wait(plan, now);
                if !may_wait {
                    return Err(Failure::NoEndpoint);
                }
            }
            Err(Refusal::Saturated) => {}
        }
    }
    Box::pin(line.wait(client, plan, tried, request, place)).await
}
