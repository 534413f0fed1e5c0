//! The life of a request, after its head has been read and before the connection goes on: client
//! address, route, then what [`balance`] or an answer of Subak's own makes of it, finish. Knows no
//! protocol.

use std::task::Poll;
use std::time::Duration;

use subak_balance::Key;
use subak_base::Tick;
use subak_limits::Verdict;
use subak_message::{BodyLength, Fault, HeadError};
use subak_net::tls::TlsFacts;
use subak_net::{Deadline, now};
use subak_pool::{Client, Outcome, Passage};
use subak_telemetry::{self as telemetry, Cause};

use crate::access_log::{Moved, Through, Went};
use crate::answer;
use crate::balance::{Who, balance};
use crate::client_addr::ClientAddr;
use crate::exchange::ClientSide;
use crate::failure::Failure;
use crate::forward::PROGRESS;
use crate::key::{self, Ends};
use crate::limits::{Asked, Bounds, Told};
use crate::pace::Pace;
use crate::route::{Action, Route};
use crate::service::Service;
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
    /// What TLS the client speaks, where endpoints want to hear of it.
    pub(crate) facts: Option<&'a TlsFacts>,
}

/// Serves one request: everything of its answer is queued with the client side and, if it came from
/// an endpoint, taken by it.
///
/// # Errors
/// A failure after a part of the answer has left, or without anybody to answer: the client's
/// connection (or stream) must be cut off, so that the client cannot take the answer for complete.
pub(crate) async fn live<C: ClientSide>(
    client: &mut C,
    arrived: &Arrived,
    heads: &mut Heads,
    place: &Place<'_>,
) -> Result<(), Failure> {
    let service = place.service;
    heads.decision = service.decisions.name(|| place.worker.handle.random());
    if let Some(logs) = &service.logs {
        logs.capture(&heads.request, &mut heads.captured);
    }
    let address = service.receive(arrived.ends.peer, &mut heads.request);
    heads.story.client = address.ip;
    if address.is_unreadable {
        let error = HeadError { fault: Fault::ClientUnreadable, offset: 0 };
        return fail(client, Failure::BadHead(error), heads, (service, None), place.worker);
    }
    if let Some(answers) = &service.acme_answers
        && let Some(answer) = answers.find(heads.request.path())
    {
        let changes = answer::changes(service, None, heads.decision);
        let method = heads.request.method;
        answer::challenge(client, answer, method, &mut heads.answer, changes);
        heads.story.status = heads.answer.status;
        let outcome = telemetry::Outcome::of_status(heads.answer.status);
        service.metrics.request(place.worker.index(), outcome);
        return Ok(());
    }
    if service.refuses(heads.request.method) {
        return fail(client, Failure::MethodRefused, heads, (service, None), place.worker);
    }
    let (mut told, mut entered) = (None, None);
    if let Some(bounds) = &service.bounds
        && let Err(failure) = enter(bounds, arrived, &address, heads, (&mut told, &mut entered))
    {
        return fail(client, failure, heads, (service, None), place.worker);
    }
    let Some(route) = service.route(&heads.request, address.ip) else {
        return fail(client, Failure::NoRoute, heads, (service, None), place.worker);
    };
    route.metrics.hit(place.worker.index());
    place.went.route.set(Some(route));
    if let Some(bounds) = &route.bounds {
        let noted = (&mut told, &mut entered);
        if let Err(failure) = enter(bounds, arrived, &address, heads, noted) {
            return fail(client, failure, heads, (service, Some(route)), place.worker);
        }
        if let Some(most) = bounds.body() {
            client.limit_body(most);
        }
    }
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
        if plan.pool.has_shadows() {
            key::extract_beside(&plan.pool, heads, &address, &arrived.ends);
        }
        let told = told.as_ref();
        let decision = heads.decision;
        let who = Who { address: &address, key, decision, side, told, entered };
        let passage = plan.pool.circuit().map(|circuit| Passage::enter(circuit, now()));
        let balanced = match &passage {
            Some(Err(closed)) => Err(Failure::Circuit(*closed)),
            Some(Ok(_)) | None => balance(client, arrived, &who, heads, plan, place).await,
        };
        if let Some(Ok(passage)) = passage {
            let client = address.ip.map_or(Client::UNKNOWN, Client::of);
            settle(passage, &balanced, heads.answer.status, client);
        }
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
        Action::Redirect(redirect) if answer::has_nowhere(redirect, &heads.request) => {
            let error = HeadError { fault: Fault::HostMissing, offset: 0 };
            let pages = (service, Some(route));
            return fail(client, Failure::BadHead(error), heads, pages, place.worker);
        }
        Action::Redirect(redirect) => {
            let changes = answer::changes(service, Some(route), heads.decision);
            let changes = changes.telling(told.as_ref());
            answer::redirect(client, redirect, &heads.request, &mut heads.answer, changes);
        }
        Action::Respond(respond) => {
            let changes = answer::changes(service, Some(route), heads.decision);
            let changes = changes.telling(told.as_ref());
            let method = heads.request.method;
            answer::respond(client, respond, method, &mut heads.answer, changes);
        }
    }
    heads.story.status = heads.answer.status;
    let outcome = telemetry::Outcome::of_status(heads.answer.status);
    service.metrics.request(place.worker.index(), outcome);
    Ok(())
}

/// Tells the circuit of its pool how a request has ended.
#[cold]
fn settle(passage: Passage<'_>, balanced: &Result<(), Failure>, status: u16, client: Client) {
    let now = now();
    let verdict = match balanced {
        // How long a tunnel lasts is up to those who use it.
        Ok(()) if status == 101 => Verdict::Well(Duration::ZERO),
        Ok(()) if status < 500 => Verdict::Well(now.since(passage.since())),
        Ok(()) => Verdict::Failed,
        Err(failure) => match failure.outcome(false) {
            Outcome::Unreachable | Outcome::Broken | Outcome::Late | Outcome::Failed => {
                Verdict::Failed
            }
            Outcome::Completed(_) | Outcome::Cancelled => Verdict::Unknown,
        },
    };
    passage.settle(verdict, client, now);
}

/// Lets a request go on within these bounds, or not.
#[cold]
fn enter(
    bounds: &Bounds,
    arrived: &Arrived,
    address: &ClientAddr,
    heads: &mut Heads,
    (told, entered): (&mut Option<Told>, &mut Option<Tick>),
) -> Result<(), Failure> {
    let Heads { request, held, .. } = heads;
    let now = *entered.get_or_insert_with(now);
    let asked = Asked { head: request, client: address.ip, body: arrived.body, now, nth: 0 };
    bounds.enter(&asked, held, told)
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
    heads.story.code = None;
    tracing::debug!(
        listener = %service.name,
        fault = ?failure.fault(),
        status,
        reason = %failure.reason(),
        "a request failed"
    );
    let Some(status) = status else { return Err(failure) };
    let method = heads.request.method;
    let told = match &failure {
        Failure::Over(over) => over.told(),
        _ => None,
    };
    let changes = answer::changes(service, route, heads.decision).telling(told);
    if heads.story.is_call {
        // gRPC's clients want to hear it in their own way.
        let code = failure.code(status);
        (heads.story.status, heads.story.code) = (200, Some(code));
        answer::call_failure(client, &failure, code, &mut heads.answer, changes);
        return Ok(());
    }
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
    let (mut taken, mut unnoted) = (client.taken(), 0);
    deadline.set(service.timeouts.write_idle);
    std::future::poll_fn(|context| {
        let polled = client.poll_flush(context);
        let news = client.taken() - taken;
        if news > 0 {
            taken += news;
            pace.moved(news, now);
            unnoted += news;
        }
        if unnoted >= PROGRESS {
            unnoted = 0;
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
        if let Some(code) = heads.story.code {
            plan.metrics.call(index, code as usize);
        }
    }
    if let Some(logs) = &service.logs {
        logs.write((service, went), heads, moved, through);
    }
}
