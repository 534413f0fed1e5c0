//! How endpoints are asked whether they are well.

use std::num::NonZeroU16;
use std::sync::Arc;

use subak_health::{AgentSpec, Expect, ProbeSpec};
use subak_message::Method;
use subak_message::proxy_header::Version;

use super::EndpointTls;
use crate::headers::HeaderValue;

/// `health` of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct HealthCheck {
    /// What is asked.
    pub check: Check,
    /// Where, at the endpoint's address; `None`: at the endpoint's own port.
    pub port: Option<NonZeroU16>,
    /// How TLS is spoken; `None`: cleartext.
    pub tls: Option<EndpointTls>,
    /// Which header of the PROXY protocol comes first; `None`: none does.
    pub proxy_protocol: Option<Version>,
    /// When, and what the results mean.
    pub spec: ProbeSpec,
}

/// What a health check does.
#[derive(Clone, PartialEq, Debug)]
pub enum Check {
    /// Opens a connection and closes it.
    Tcp,
    /// Sends a request.
    Http(HttpCheck),
    /// Calls gRPC's health check.
    Grpc(GrpcCheck),
}

/// The request of a health check, and what its answer has to be.
#[derive(Clone, PartialEq, Debug)]
pub struct HttpCheck {
    /// GET, HEAD or OPTIONS.
    pub method: Method,
    /// Path and query, as Subak would take them from a client: from `/`, without a fragment.
    pub target: Arc<str>,
    /// Its Host; `None`: the endpoint's address, `localhost` for a unix socket.
    pub host: Option<HeaderValue>,
    /// Which answers pass. No body is expected of a HEAD.
    pub expect: Expect,
}

/// What gRPC's health check is called for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrpcCheck {
    /// The service; "": the server as a whole.
    pub service: Arc<str>,
    /// Its Host; `None`: the endpoint's address, `localhost` for a unix socket.
    pub host: Option<HeaderValue>,
}

/// `agent_check` of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentCheck {
    /// Where the agent listens, at the endpoint's address.
    pub port: NonZeroU16,
    /// When it is asked.
    pub spec: AgentSpec,
}
