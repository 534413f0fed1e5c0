//! One try at one endpoint: a connection that is idle or new, the exchange on it, and what becomes of
//! the connection.

use std::task::Poll;
use std::time::Duration;

use subak_base::{BitSet, Tick};
use subak_config::{EndpointProtocol, HostForward};
use subak_message::{Known, Version};
use subak_net::tls::client::Offer;
use subak_net::{Deadline, now};
use subak_pool::Lease;

use crate::endpoints::{self, Header, Lent};
use crate::exchange::{ClientSide, EndpointSide, Look, QUIET, RequestOutline};
use crate::failure::{EndpointFault, Failure};
use crate::forward::{Forwarded, Terms, forward};
use crate::h1::H1Endpoint;
use crate::h2::H2Endpoint;
use crate::life::{Arrived, Place};
use crate::limits::Told;
use crate::line::Standing;
use crate::meter::Meter;
use crate::plan::{PoolPlan, endpoint_host};
use crate::replay::Replay;
use crate::split::SplitCookie;
use crate::stick::NewCookie;
use crate::worker::Heads;

/// How often a request goes to another connection of the same endpoint because that one says goodbye
/// without having looked at it: servers that do so every few requests may say it twice in a row.
const MOST_GOODBYES: u32 = 4;

/// How one endpoint is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// Whether its answer is forwarded whatever its status is.
    pub(crate) keep_any: bool,
    /// Whether it is a gRPC call.
    pub(crate) is_call: bool,
    /// What its answer tells the client to come back with.
    pub(crate) new_cookie: Option<NewCookie<'a>>,
    /// And of its side of a split.
    pub(crate) side: Option<SplitCookie<'a>>,
    /// And of what a rate leaves it.
    pub(crate) told: Option<&'a Told>,
    /// The endpoints that were tried before this one.
    pub(crate) tried: &'a BitSet,
    /// What is left of the time for connections, of this endpoint and others.
    pub(crate) connect_left: Duration,
    /// The request's place in line, kept until there is a connection.
    pub(crate) line: &'a dyn Standing,
}

/// The least time for a connection while there is so much: a lost packet is sent again after a second, but
/// networks that lose none answer in less.
const CONNECT_LEAST: Duration = Duration::from_millis(250);

impl Attempt<'_> {
    /// How long a connection may take: half of what is left while there are others to try.
    fn connect_within(&self, (plan, lease): (&PoolPlan, &Lease<'_>)) -> Duration {
        let has_other = plan.retry_on.connect && plan.pool.has_other(self.tried, lease.index());
        match has_other {
            true => (self.connect_left / 2).max(CONNECT_LEAST).min(self.connect_left),
            false => self.connect_left,
        }
    }
}

/// One endpoint: connects, forwards, and keeps the connection if it can be used again. Answers when
/// the endpoint began to answer, where its pool wants to know; the error says also whether any byte of
/// the request may have reached the endpoint.
pub(crate) async fn try_endpoint<C: ClientSide>(
    client: &mut C,
    arrived: &Arrived,
    heads: &mut Heads,
    (plan, lease): (&PoolPlan, &Lease<'_>),
    body: &mut Replay,
    attempt: &Attempt<'_>,
    place: &Place<'_>,
) -> Result<Option<Tick>, (Failure, bool)> {
    let Place { service, worker, deadline, .. } = *place;
    let header = endpoints::header(plan, &arrived.ends, place.facts);
    let mut lent = match endpoints::at_hand(worker, lease, plan, header.as_deref()) {
        Some(lent) => lent,
        None => {
            fresh(client, (plan, lease, attempt), (header.clone(), Offer::All), heads, place)
                .await?
        }
    };
    attempt.line.leave();
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
    let idempotent = heads.request.method.is_idempotent();
    let terms = Terms {
        service,
        plan,
        attempt,
        retries_statuses: !attempt.keep_any && idempotent,
        wants_stream: arrived.upgrade && heads.request.version == Version::Http2,
        times_first_byte: plan.pool.times_answers()
            || service.logs.as_ref().is_some_and(|logs| logs.wanted().first_byte),
        named: service.decisions.shown(heads.decision),
    };
    let asked = Asked { arrived, default_host: default_host.as_bytes() };
    let mut repeats = 0;
    loop {
        let (forwarded, traces) = match lent {
            Lent::Exclusive(mut connection) => {
                let mut side = H1Endpoint::new(&mut connection.stream);
                let messages = (&mut *heads, &mut *body);
                let meter = (&connection.meter, lease);
                let forwarded =
                    ask(client, &mut side, messages, &asked, &terms, meter, deadline).await;
                let traces = Traces::of(&side, connection.reused, false);
                if forwarded.is_ok() && side.can_continue() {
                    worker.idle.put_back(connection, plan, now());
                }
                (forwarded, traces)
            }
            Lent::Stream(stream) => {
                let connection = stream.connection().clone();
                if arrived.upgrade
                    && let Err(failure) = connection.takes_websocket(&heads.request)
                {
                    if plan.protocol != EndpointProtocol::Auto {
                        return Err((failure, false));
                    }
                    drop(stream);
                    lent = match endpoints::http1_at_hand(worker, lease, plan) {
                        Some(lent) => lent,
                        None => {
                            let offer = (None, Offer::Http1);
                            match fresh(client, (plan, lease, attempt), offer, heads, place).await {
                                // It speaks HTTP/2 alone, and is no worse for that.
                                Err((Failure::Tls(_), _)) => return Err((failure, false)),
                                opened => opened?,
                            }
                        }
                    };
                    continue;
                }
                // A box, or every exchange on HTTP/1 would have room for it.
                let mut side = Box::new(H2Endpoint::new(stream));
                let messages = (&mut *heads, &mut *body);
                let meter = (&connection.meter, lease);
                let forwarded =
                    ask(client, &mut *side, messages, &asked, &terms, meter, deadline).await;
                if let Err(Failure::FirstByteTimeout | Failure::EndpointIdle) = forwarded {
                    connection.suspect();
                }
                let traces = Traces::of(&*side, side.lease().is_reused(), side.is_unprocessed());
                (forwarded, traces)
            }
        };
        let failure = match forwarded {
            Ok(Forwarded { first_byte, code }) => {
                heads.story.code = code;
                return Ok(first_byte);
            }
            Err(failure) => failure,
        };
        let most = match failure {
            Failure::Endpoint(EndpointFault::Leaving(_)) => MOST_GOODBYES,
            _ => 1,
        };
        let sent = traces.has_sent;
        let may_repeat = traces.is_stale(&failure)
            && repeats < most
            && body.can_rewind()
            && (idempotent || !sent);
        if !may_repeat {
            return Err((failure, sent));
        }
        // It was closed while it was idle, or at the same moment, or it had no place for this request:
        // says nothing about the endpoint.
        repeats += 1;
        lent = fresh(client, (plan, lease, attempt), (header.clone(), Offer::All), heads, place)
            .await?;
        body.rewind();
    }
}

/// What is asked beside the head itself.
struct Asked<'a> {
    arrived: &'a Arrived,
    /// The Host to send where the request has none.
    default_host: &'a [u8],
}

/// Sends the request's head, then forwards both ways. No `async fn`: its future would be copied into
/// another one.
fn ask<'a, C: ClientSide, E: EndpointSide>(
    client: &'a mut C,
    side: &'a mut E,
    (heads, body): (&'a mut Heads, &'a mut Replay),
    asked: &Asked<'_>,
    terms: &'a Terms<'a>,
    meter: (&'a Meter, &'a Lease<'a>),
    deadline: &'a Deadline,
) -> impl Future<Output = Result<Forwarded, Failure>> + use<'a, C, E> {
    let Heads { request, answer, text, .. } = heads;
    let Asked { arrived, default_host } = *asked;
    let outline = RequestOutline {
        target: if text.is_empty() { request.forward_target() } else { text },
        default_host,
        body: body.length(),
        upgrade: arrived.upgrade,
        expect_continue: arrived.expect_continue,
    };
    side.send_head(request, &outline);
    forward(client, side, (request, body, answer), terms, meter, deadline)
}

/// What an exchange has left on its connection.
struct Traces {
    has_sent: bool,
    has_received: bool,
    is_reused: bool,
    is_unprocessed: bool,
}

impl Traces {
    fn of(side: &impl EndpointSide, is_reused: bool, is_unprocessed: bool) -> Traces {
        let (has_sent, has_received) = (side.has_sent(), side.has_received());
        Traces { has_sent, has_received, is_reused, is_unprocessed }
    }

    /// Whether it failed because the connection was over, or as good as over, before it began.
    fn is_stale(&self, failure: &Failure) -> bool {
        let is_broken = matches!(failure, Failure::Endpoint(EndpointFault::Broken(_)));
        !self.has_received && (self.is_unprocessed || self.is_reused && is_broken)
    }
}

/// A new connection, unless the client leaves first. Boxed: seldom needed, and large enough to double
/// what every request carries.
async fn fresh<C: ClientSide>(
    client: &mut C,
    (plan, lease, attempt): (&PoolPlan, &Lease<'_>, &Attempt<'_>),
    wanted: (Option<Header>, Offer),
    heads: &mut Heads,
    place: &Place<'_>,
) -> Result<Lent, (Failure, bool)> {
    let Place { service, worker, deadline, .. } = *place;
    let is_timed = service.logs.as_ref().is_some_and(|logs| logs.wanted().connect);
    let began = is_timed.then(now);
    lease.connect_within(attempt.connect_within((plan, lease)));
    let mut opening = Box::pin(endpoints::open(worker, lease, plan, wanted, deadline));
    let quiet = Deadline::new();
    quiet.set(QUIET);
    let opened = std::future::poll_fn(|context| match opening.as_mut().poll(context) {
        Poll::Ready(opened) => Poll::Ready(opened),
        Poll::Pending => {
            let look = if quiet.expired(context) { Look::End } else { Look::Reset };
            client.poll_gone(context, look).map(|fault| Err(fault.into()))
        }
    });
    let mut opened = opened.await.map_err(|failure| (failure, false));
    if opened.is_ok() && lease.endpoint().is_in_back_off() {
        lease.connected(now());
    }
    if let Some(began) = began {
        heads.story.connect += now().since(began);
        if let Ok(lent) = &mut opened {
            heads.story.endpoint_handshake += lent.take_secured_in();
        }
    }
    opened
}
