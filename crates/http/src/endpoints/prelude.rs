//! What comes on a new connection to an endpoint before its protocol: a header of the PROXY protocol,
//! and TLS.

use std::task::Poll;

use subak_net::tls::TlsFailure;
use subak_net::tls::client::{Offer, TlsTarget};
use subak_net::{Deadline, Stream};
use subak_pool::Lease;

use crate::failure::Failure;

/// Sends the header. It goes before everything else, TLS included: it does not wait for the request.
pub(super) async fn announce(
    stream: &mut Stream,
    header: &[u8],
    deadline: &Deadline,
) -> Result<(), Failure> {
    stream.append().extend_from_slice(header);
    std::future::poll_fn(|context| match stream.poll_flush(context) {
        Poll::Ready(flushed) => Poll::Ready(flushed.map_err(Failure::Connect)),
        Poll::Pending if deadline.expired(context) => Poll::Ready(Err(Failure::ConnectTimeout)),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Makes a connection secure, within what is left of the time to connect.
pub(super) async fn secure(
    stream: Stream,
    (target, offer): (&TlsTarget, Offer),
    (pool, lease): (&str, &Lease<'_>),
    deadline: &Deadline,
) -> Result<Stream, Failure> {
    let failure = match target.secure(stream, offer, deadline).await {
        Ok(stream) => return Ok(stream),
        Err(failure) => failure,
    };
    let endpoint = lease.endpoint();
    endpoint.note_refusal(&format!("TLS: {failure}"));
    if target.may_complain() {
        let remedy = failure.remedy();
        tracing::warn!(
            pool,
            endpoint = endpoint.name(),
            "no TLS with an endpoint: {failure}; {remedy}"
        );
    }
    Err(match failure {
        TlsFailure::TimedOut => Failure::ConnectTimeout,
        failure => Failure::Tls(failure),
    })
}
