//! Why a request was not served: a closed list, the same for every protocol.

/// Whose fault it was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Blame {
    /// The client sent nonsense, was too slow, or left.
    Client,
    /// The endpoint refused, was too slow, sent nonsense, or broke off.
    Endpoint,
    /// Subak had no room, or nobody to ask.
    Subak,
}

impl Blame {
    /// The value of the label `fault`.
    pub fn name(self) -> &'static str {
        match self {
            Blame::Client => "client",
            Blame::Endpoint => "endpoint",
            Blame::Subak => "subak",
        }
    }
}

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $blame:ident,)*) => {
        /// Why a request was not served.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Cause { $($(#[doc = $doc])+ $variant,)* }

        impl Cause {
            /// Every cause, in the order of its number.
            pub const ALL: [Cause; [$($name),*].len()] = [$(Cause::$variant),*];

            /// The value of the label `cause`.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name,)* }
            }

            /// Whose fault it was.
            pub fn blame(self) -> Blame {
                match self { $(Cause::$variant => Blame::$blame,)* }
            }

            /// What it means, for documents.
            pub fn meaning(self) -> &'static str {
                match self { $(Cause::$variant => concat!($($doc),+).trim_ascii(),)* }
            }
        }
    };
}

causes! {
    /// The head cannot be read, or is ambiguous.
    BadHead "bad_head" Client,
    /// The method is not forwarded.
    MethodRefused "method_refused" Client,
    /// No route matches, and the listener has no pool.
    NoRoute "no_route" Client,
    /// HTTP/1 on a listener that speaks HTTP/2 alone.
    NotSpoken "not_spoken" Client,
    /// HTTP in clear where TLS is spoken.
    NoTls "no_tls" Client,
    /// The client's network may not in.
    Denied "denied" Client,
    /// More requests in a time than a rate limit allows.
    RateLimited "rate_limited" Client,
    /// More requests at once than a limit allows.
    TooManyAtOnce "too_many_at_once" Client,
    /// The client left.
    ClientGone "client_gone" Client,
    /// The body cannot be read, or ended early.
    BadBody "bad_body" Client,
    /// The body is larger than allowed.
    BodyTooLarge "body_too_large" Client,
    /// The client sent or took too little in too long a time.
    ClientSlow "client_slow" Client,
    /// The time was over that the client itself gave a gRPC call.
    CallDeadline "call_deadline" Client,
    /// No endpoint was left that could serve it.
    NoEndpoint "no_endpoint" Subak,
    /// Too many requests were waiting already.
    QueueFull "queue_full" Subak,
    /// No endpoint came free in time.
    QueueTimeout "queue_timeout" Subak,
    /// The pool's circuit was open.
    CircuitOpen "circuit_open" Subak,
    /// As many requests were under way as the pool's circuit allows.
    CircuitFull "circuit_full" Subak,
    /// No descriptor was left for a connection to an endpoint.
    OutOfDescriptors "out_of_descriptors" Subak,
    /// Buffers held as many bytes as they may (`buffers`).
    OutOfMemory "out_of_memory" Subak,
    /// This machine had no port left for a connection to the endpoint.
    NoPorts "no_ports" Subak,
    /// The endpoint refused the connection.
    Connect "connect" Endpoint,
    /// No TLS with the endpoint: its certificate is not good, or there is another reason.
    Tls "tls" Endpoint,
    /// The endpoint did not accept in time.
    ConnectTimeout "connect_timeout" Endpoint,
    /// The endpoint broke off, or its answer cannot be read.
    Broken "broken" Endpoint,
    /// The endpoint did not begin to answer in time.
    FirstByteTimeout "first_byte_timeout" Endpoint,
    /// The endpoint stopped in the middle of its answer, or took nothing of the request.
    EndpointIdle "endpoint_idle" Endpoint,
    /// The answer has a status that is tried elsewhere, and there was no elsewhere.
    RetryStatus "retry_status" Endpoint,
    /// The client asked to switch protocols, and the endpoint's HTTP/2 cannot, or the endpoint did not switch.
    NoSwitch "no_switch" Subak,
}

#[cfg(test)]
mod tests {
    use super::Cause;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_unique() {
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            assert!(!cause.meaning().is_empty() && !cause.meaning().starts_with(' '));
        }
        let names: BTreeSet<_> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(names.len(), Cause::ALL.len());
    }
}
