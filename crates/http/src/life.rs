//! The life of a request, after its head has been read and before the connection goes on: client
//! address, route, acquire, connect, forward, finish. Knows no protocol.

use std::task::Poll;

use subak_balance::Key;
use subak_base::{BitSet, DecisionId, Tick};
use subak_config::HostForward;
use subak_message::{BodyLength, Form, Known};
use subak_net::{Deadline, now};
use subak_pool::{Acquire, Answered, Ending, Lease, Outcome, Pool, Refusal};
use subak_telemetry::{self as telemetry, Cause};

use crate::access_log::{Moved, Through, Went};
use crate::answer;
use crate::client_addr::ClientAddr;
use crate::edit;
use crate::endpoints::{self, Connection};
use crate::exchange::{ClientSide, EndpointSide, RequestOutline};
use crate::failure::{ClientFault, EndpointFault, Failure};
use crate::forward::{Terms, forward};
use crate::h1::H1Endpoint;
use crate::key::{self, Ends};
use crate::pace::Pace;
use crate::replay::Replay;
use crate::rewrite;
use crate::route::{Action, Route};
use crate::service::{PoolPlan, Service, endpoint_host};
use crate::split::SplitCookie;
use crate::stick::{NewCookie, Visit};
use crate::worker::{Heads, Worker};

/// What the protocol module has read of a request, beside its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// How long the body is.
    pub(crate) body: BodyLength,
    /// The client asks to switch protocols.
    pub(crate) upgrade: bool,
    /// The client waits for 100 (Continue).
    pub(crate) expect_continue: bool,
    /// The client's connection.
    pub(crate) ends: Ends,
}

/// Who asks.
#[derive(Clone, Copy)]
struct Who<'a> {
    address: &'a ClientAddr,
    /// What the pool's algorithm recognises the client by.
    key: Key<'a>,
    decision: Option<DecisionId>,
    /// What the answer tells the client of its side of a split.
    side: Option<SplitCookie<'a>>,
}

/// Where a request is served.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// By this service,
    pub(crate) service: &'a Service,
    /// on this worker,
    pub(crate) worker: &'a Worker,
    /// with the time limits of this task.
    pub(crate) deadline: &'a Deadline,
    /// Where it goes is noted here.
    pub(crate) went: &'a Went<'a>,
}

/// Serves one request: everything of its answer is queued with the client side and, if it came from
/// an endpoint, taken by it.
///
/// # Errors
/// A failure after a part of the answer has left, or without anybody to answer: the client's
/// connection (or stream) must be cut off, so that the client cannot take the answer for complete.
pub(crate) async fn live<C: ClientSide>(
    client: &mut C,
    arrived: Arrived,
    heads: &mut Heads,
    place: Place<'_>,
) -> Result<(), Failure> {
    let service = place.service;
    heads.decision = service.decisions.name(|| place.worker.handle.random());
    if let Some(logs) = &service.logs {
        logs.capture(&heads.request, &mut heads.captured);
    }
    let address = ClientAddr::resolve(arrived.ends.peer, &service.trusted, &heads.request);
    heads.story.client = address.ip;
    if service.refuses(heads.request.method) {
        return fail(client, Failure::MethodRefused, heads, (service, None), place.worker);
    }
    let Some(route) = service.route(&heads.request, address.ip) else {
        return fail(client, Failure::NoRoute, heads, (service, None), place.worker);
    };
    route.metrics.hit(place.worker.index());
    place.went.route.set(Some(route));
    let mut kept = std::mem::take(&mut heads.key);
    let target = match &route.action {
        Action::Pool(plan) => Some((plan, None)),
        Action::Split(split) => {
            let client = (&address, &arrived.ends);
            let random = place.worker.handle.random();
            Some(split.choose(&mut heads.request, client, &mut kept, random))
        }
        Action::Redirect(_) | Action::Respond(_) => None,
    };
    if let Some((plan, side)) = target {
        place.went.plan.set(Some(plan));
        let key = plan.pool.algorithm().key().map_or(Key::None, |source| {
            key::extract(source, &heads.request, &address, &arrived.ends, &mut kept)
        });
        let who = Who { address: &address, key, decision: heads.decision, side };
        let balanced = balance(client, &arrived, who, heads, plan, place).await;
        heads.key = kept;
        if let Err(failure) = balanced {
            plan.metrics.failed(place.worker.index());
            return fail(client, failure, heads, (service, Some(route)), place.worker);
        }
    } else {
        heads.key = kept;
    }
    match &route.action {
        Action::Pool(_) | Action::Split(_) => {}
        Action::Redirect(redirect) => {
            let changes = answer::changes(service, Some(route), heads.decision);
            answer::redirect(client, redirect, &heads.request, &mut heads.answer, changes);
        }
        Action::Respond(respond) => {
            let changes = answer::changes(service, Some(route), heads.decision);
            let method = heads.request.method;
            answer::respond(client, respond, method, &mut heads.answer, changes);
        }
    }
    heads.story.status = heads.answer.status;
    let outcome = telemetry::Outcome::of_status(heads.answer.status);
    service.metrics.request(place.worker.index(), outcome);
    Ok(())
}

/// Answers a failure while that is still possible.
pub(crate) fn fail<C: ClientSide>(
    client: &mut C,
    failure: Failure,
    heads: &mut Heads,
    (service, route): (&Service, Option<&Route>),
    worker: &Worker,
) -> Result<(), Failure> {
    let status = failure.status().filter(|_| !client.is_answered());
    let outcome = status.map_or(telemetry::Outcome::None, telemetry::Outcome::of_status);
    let cause = failure.cause();
    service.metrics.failure(worker.index(), cause, outcome);
    heads.story.failure = Some(cause);
    // What has left of an endpoint's answer has left.
    let begun = if client.is_answered() { heads.answer.status } else { 0 };
    heads.story.status = status.unwrap_or(begun);
    tracing::debug!(
        listener = %service.name,
        fault = ?failure.fault(),
        status,
        reason = %failure.reason(),
        "a request failed"
    );
    let Some(status) = status else { return Err(failure) };
    let method = heads.request.method;
    let changes = answer::changes(service, route, heads.decision);
    let pages = answer::Pages { service, route };
    answer::failure(client, (&failure, status), method, &mut heads.answer, (pages, changes));
    Ok(())
}

/// Hands the rest of an answer to the client.
///
/// # Errors
/// Why it has not got all of it: it has left, or takes too little.
pub(crate) async fn finish<C: ClientSide>(
    client: &mut C,
    service: &Service,
    deadline: &Deadline,
) -> Result<(), Cause> {
    let mut pace = Pace::default();
    let mut taken = client.taken();
    deadline.set(service.timeouts.write_idle);
    std::future::poll_fn(|context| {
        let polled = client.poll_flush(context);
        let news = client.taken() - taken;
        if news > 0 {
            taken += news;
            pace.moved(news, now);
            deadline.set(service.timeouts.write_idle);
        }
        match polled {
            Poll::Ready(flushed) => Poll::Ready(flushed.map_err(|_| Cause::ClientGone)),
            Poll::Pending if pace.is_too_slow(service.least_rate) || deadline.expired(context) => {
                Poll::Ready(Err(Cause::ClientSlow))
            }
            Poll::Pending => {
                pace.waits(now);
                Poll::Pending
            }
        }
    })
    .await
}

/// A request is over: counts what was moved for it, and logs it.
pub(crate) fn over(
    (service, went): (&Service, &Went<'_>),
    heads: &Heads,
    moved: Moved,
    through: Through<'_>,
) {
    let index = through.worker.index();
    service.metrics.moved(index, moved.bytes_in, moved.bytes_out);
    if let Some(plan) = went.plan.get() {
        plan.metrics.moved(index, moved.bytes_in, moved.bytes_out);
    }
    if let Some(logs) = &service.logs {
        logs.write((service, went), heads, moved, through);
    }
}

/// Tries one endpoint after another until one has answered, as far as that is safe and allowed.
async fn balance<C: ClientSide>(
    client: &mut C,
    arrived: &Arrived,
    who: Who<'_>,
    heads: &mut Heads,
    plan: &PoolPlan,
    place: Place<'_>,
) -> Result<(), Failure> {
    if let (BodyLength::Known(length), Some(most)) = (arrived.body, place.service.limits.body_bytes)
        && length > most
    {
        return Err(Failure::Client(ClientFault::BodyTooLarge));
    }
    let visit = match &plan.stick {
        None => Visit::default(),
        Some(stick) => stick.visit(&mut heads.request.fields, who.address.ip),
    };
    edit::tell_client(&mut heads.request, who.address, place.service.forwarded, &mut heads.text);
    edit::apply(&mut heads.request.fields, &plan.request_edits);
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
    let mut attempts = 0;
    let index = place.worker.index();
    let began = now();
    heads.story.began.get_or_insert(began);
    let mut moment = began;
    loop {
        let lease = match acquire(client, (plan, &visit), &tried, who, place, moment).await {
            Ok(lease) => lease,
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
        let keep_any = last || plan.retry_on.statuses.is_empty() || {
            tried.insert(lease.index());
            !plan.pool.has_untried(&tried)
        };
        let new_cookie = plan
            .stick
            .as_ref()
            .and_then(|stick| stick.new_cookie(&visit, (&plan.pool, &lease), &tried, moment));
        let attempt = Attempt { keep_any, new_cookie, side: who.side };
        let tried_now =
            try_endpoint(client, arrived, heads, (plan, &lease), &mut body, attempt, place).await;
        let (failure, sent) = match tried_now {
            Ok(first_byte) => {
                moment = now();
                let answered = Answered {
                    first_byte: first_byte
                        .filter(|_| plan.pool.times_answers())
                        .map(|first_byte| first_byte.since(lease.since())),
                    status_failed: heads.answer.status >= 500,
                };
                if lease.is_recorded() {
                    lease.tell(Ending { status: Some(heads.answer.status), failure: None });
                }
                let (endpoint, since) = (lease.endpoint(), lease.since());
                lease.settle(Outcome::Completed(answered), moment);
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
        lease.settle(failure.outcome(), moment);
        // A refused connection has cost the endpoint nothing: it neither counts nor draws on the
        // budget; `tried` bounds how often it can happen.
        let refused = matches!(failure, Failure::Connect(_));
        if refused {
            attempts -= 1;
        }
        // Else the answer would have been forwarded.
        let paid = matches!(failure, Failure::RetryStatus(_));
        let idempotent = heads.request.method.is_idempotent();
        let may_retry = !client.is_answered()
            && body.can_rewind()
            && (idempotent || !sent)
            && is_retried(&failure, plan)
            && plan.pool.has_untried(&tried)
            && (refused || paid || (!last && plan.pool.withdraw_retry(moment)));
        if !may_retry {
            return Err(failure);
        }
        tracing::debug!(pool = plan.pool.name(), reason = %failure.reason(), "trying another endpoint");
        plan.metrics.retried(index);
        body.rewind();
    }
}

/// Whether a failure is of a kind that the pool tries elsewhere.
fn is_retried(failure: &Failure, plan: &PoolPlan) -> bool {
    let on = &plan.retry_on;
    match failure {
        Failure::Connect(_) | Failure::ConnectTimeout => on.connect,
        Failure::Endpoint(_) => on.reset,
        Failure::FirstByteTimeout | Failure::EndpointIdle => on.timeout,
        Failure::RetryStatus(_) => true,
        _ => false,
    }
}

/// A lease of an untried endpoint; stands in line while all of them are at their cap.
async fn acquire<'p, C: ClientSide>(
    client: &mut C,
    (plan, visit): (&'p PoolPlan, &Visit),
    tried: &BitSet,
    who: Who<'_>,
    place: Place<'_>,
    now: Tick,
) -> Result<Lease<'p>, Failure> {
    let request = Acquire {
        key: who.key,
        random: place.worker.handle.random(),
        now,
        in_turn: false,
        stick: visit.home(),
        client: visit.client,
        from: who.address.ip,
        decision: who.decision,
    };
    match plan.pool.acquire(&request, tried) {
        Ok(lease) => Ok(lease),
        Err(Refusal::NoEndpoint) => Err(Failure::NoEndpoint),
        Err(Refusal::Saturated) => {
            Box::pin(wait_in_line(client, plan, tried, request, place)).await
        }
    }
}

async fn wait_in_line<'p, C: ClientSide>(
    client: &mut C,
    plan: &'p PoolPlan,
    tried: &BitSet,
    request: Acquire<'_>,
    place: Place<'_>,
) -> Result<Lease<'p>, Failure> {
    let pool: &'p Pool = &plan.pool;
    let mut waiter = pool.queue().join(pool.queue_length()).ok_or(Failure::QueueFull)?;
    tracing::debug!(
        pool = pool.name(),
        waiting = pool.queue().waiting(),
        "a request waits for an endpoint"
    );
    plan.metrics.waits(place.worker.index());
    let deadline = place.deadline;
    deadline.set(plan.queue_timeout);
    let mut in_turn = waiter.is_first();
    loop {
        if in_turn {
            match pool.acquire(&Acquire { now: now(), in_turn, ..request }, tried) {
                Ok(lease) => return Ok(lease),
                Err(Refusal::NoEndpoint) => return Err(Failure::NoEndpoint),
                // What has come free may be an endpoint that only this request has tried.
                Err(Refusal::Saturated) if !tried.is_empty() => waiter.pass_on(),
                Err(Refusal::Saturated) => {}
            }
        }
        std::future::poll_fn(|context| match waiter.poll_notified(context) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending if client.poll_gone(context, true).is_ready() => {
                Poll::Ready(Err(Failure::Client(ClientFault::Gone)))
            }
            Poll::Pending if deadline.expired(context) => Poll::Ready(Err(Failure::QueueTimeout)),
            Poll::Pending => Poll::Pending,
        })
        .await?;
        in_turn = true;
    }
}

/// How one endpoint is tried.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    /// Whether its answer is forwarded whatever its status is.
    keep_any: bool,
    /// What its answer tells the client to come back with.
    new_cookie: Option<NewCookie<'a>>,
    /// And of its side of a split.
    side: Option<SplitCookie<'a>>,
}

/// One endpoint: connects, forwards, and keeps the connection if it can be used again. Answers when
/// the endpoint began to answer, where its pool wants to know; the error says also whether any byte of
/// the request may have reached the endpoint.
async fn try_endpoint<C: ClientSide>(
    client: &mut C,
    arrived: &Arrived,
    heads: &mut Heads,
    (plan, lease): (&PoolPlan, &Lease<'_>),
    body: &mut Replay,
    attempt: Attempt<'_>,
    place: Place<'_>,
) -> Result<Option<Tick>, (Failure, bool)> {
    let Place { service, worker, deadline, .. } = place;
    let mut connection = match worker.idle.take(lease.endpoint().id()) {
        Some(connection) => connection,
        None => fresh(client, (plan, lease), heads, place).await?,
    };
    let default_host =
        match heads.request.fields.has(Known::Host) && plan.host == HostForward::Preserve {
            true => String::new(),
            false => match lease.host() {
                Some(host) => host.to_owned(),
                None => endpoint_host(lease.endpoint().address()),
            },
        };
    if plan.host == HostForward::Endpoint
        && let Err(error) = heads.request.fields.set_known(Known::Host, default_host.as_bytes())
    {
        tracing::debug!(%error, "the endpoint's Host was left out");
    }
    let terms = Terms {
        client_sends: service.timeouts.body_idle,
        client_takes: service.timeouts.write_idle,
        least_rate: service.least_rate,
        first_byte: plan.first_byte,
        endpoint_idle: plan.idle,
        tunnel_idle: plan.tunnel_idle,
        retry_statuses: match !attempt.keep_any && heads.request.method.is_idempotent() {
            true => &plan.retry_on.statuses,
            false => &[],
        },
        pool: &plan.pool,
        times_first_byte: plan.pool.times_answers()
            || service.logs.as_ref().is_some_and(|logs| logs.wanted().first_byte),
        answer_edits: &plan.answer_edits,
        new_cookie: attempt.new_cookie,
        side: attempt.side,
        named: service.decisions.shown(heads.decision),
    };
    loop {
        let Heads { request, answer, text, .. } = &mut *heads;
        let outline = RequestOutline {
            target: if text.is_empty() { request.forward_target() } else { text },
            default_host: default_host.as_bytes(),
            body: body.length(),
            upgrade: arrived.upgrade,
            expect_continue: arrived.expect_continue,
        };
        let mut side = H1Endpoint::new(&mut connection.stream);
        let terms = (&terms, connection.meter.begin(lease));
        let forwarding =
            forward(client, &mut side, (request, &outline), body, answer, terms, deadline);
        let forwarded = forwarding.await;
        if lease.is_counted() {
            connection.meter.end(lease, side.counters(), now());
        }
        let failure = match forwarded {
            Ok(first_byte) => {
                if side.can_continue() {
                    worker.idle.put_back(connection, plan, now());
                }
                return Ok(first_byte);
            }
            Err(failure) => failure,
        };
        let (sent, received) = (side.has_sent(), side.has_received());
        let is_stale = connection.reused
            && !received
            && matches!(failure, Failure::Endpoint(EndpointFault::Broken(_)))
            && body.can_rewind()
            && (request.method.is_idempotent() || !sent);
        if !is_stale {
            return Err((failure, sent));
        }
        // It was closed while it was idle, or at the same moment: says nothing about the endpoint.
        drop(connection);
        connection = fresh(client, (plan, lease), heads, place).await?;
        body.rewind();
    }
}

/// A new connection, unless the client leaves first. Boxed: seldom needed, and large enough to double
/// what every request carries.
async fn fresh<C: ClientSide>(
    client: &mut C,
    (plan, lease): (&PoolPlan, &Lease<'_>),
    heads: &mut Heads,
    Place { service, worker, deadline, .. }: Place<'_>,
) -> Result<Connection, (Failure, bool)> {
    let is_timed = service.logs.as_ref().is_some_and(|logs| logs.wanted().connect);
    let began = is_timed.then(now);
    let mut opening = Box::pin(endpoints::open(worker, lease, plan, deadline));
    let opened = std::future::poll_fn(|context| match opening.as_mut().poll(context) {
        Poll::Ready(opened) => Poll::Ready(opened),
        Poll::Pending if client.poll_gone(context, true).is_ready() => {
            Poll::Ready(Err(Failure::Client(ClientFault::Gone)))
        }
        Poll::Pending => Poll::Pending,
    });
    let opened = opened.await.map_err(|failure| (failure, false));
    if let Some(began) = began {
        heads.story.connect += now().since(began);
    }
    opened
}
