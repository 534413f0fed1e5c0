//! Everything a line can say: one list, from which formats, checks and docs/access-log.md derive.
//!
//! A field has a key for JSON, or the names by which users of nginx and HAProxy know it, or both.

macro_rules! fields {
    ($($variant:ident $json:literal [$($nginx:literal),*] [$($haproxy:literal),*] $doc:literal)*) => {
        /// Something a line can say.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Field { $(#[doc = $doc] $variant,)* }

        impl Field {
            /// All of them, in the order of documents.
            pub const ALL: &[Field] = &[$(Field::$variant,)*];

            /// Its key in JSON; empty where JSON has another form of it.
            pub fn json(self) -> &'static str {
                match self { $(Field::$variant => $json,)* }
            }

            /// Its names with nginx, without the `$`.
            pub fn nginx(self) -> &'static [&'static str] {
                match self { $(Field::$variant => &[$($nginx),*],)* }
            }

            /// Its names with HAProxy, without the `%`.
            pub fn haproxy(self) -> &'static [&'static str] {
                match self { $(Field::$variant => &[$($haproxy),*],)* }
            }

            /// What it says, for documents.
            pub fn meaning(self) -> &'static str {
                match self { $(Field::$variant => $doc,)* }
            }
        }
    };
}

fields! {
    Time "time" ["time_iso8601"] []
        "When the request began: UTC, to the millisecond, `2026-11-21T17:12:33.123Z`."
    TimeOfDay "" ["time_local"] ["T", "Tl"]
        "The same as `21/Nov/2026:17:12:33 +0000`; always UTC."
    TimeMillis "" [] ["t", "tr"]
        "The same as `21/Nov/2026:17:12:33.123`."
    Epoch "" ["msec"] []
        "The same in seconds since 1970, with three decimals."
    EpochSeconds "" [] ["Ts"]
        "The same in whole seconds since 1970."
    Listener "listener" [] ["f", "ft"]
        "The listener's name."
    Client "client" ["remote_addr"] ["ci"]
        "The client's address: the connection's other end, or whom a trusted proxy names."
    ClientPort "client_port" ["remote_port"] ["cp"]
        "The port of the connection's other end."
    Peer "peer" ["realip_remote_addr"] []
        "The address of the connection's other end."
    User "" ["remote_user"] []
        "Always `-`: Subak looks at no passwords."
    Method "method" ["request_method"] ["HM"]
        "The method."
    Scheme "scheme" ["scheme"] []
        "`http` or `https`."
    Host "host" ["host"] []
        "The host that was asked for, in lower case, without its port."
    Path "path" ["uri"] ["HP"]
        "The path as the client wrote it."
    Query "query" ["args", "query_string"] ["HQ"]
        "The query as the client wrote it, without its `?`."
    Target "url" ["request_uri"] ["HU"]
        "Path and query as the client wrote them."
    RequestLine "request" ["request"] ["r"]
        "Method, path with query, and protocol."
    Protocol "protocol" ["server_protocol"] ["HV"]
        "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2`."
    Status "status" ["status"] []
        "The status the client was answered with. Without an answer: null, in text 499."
    StatusOrMinus "" [] ["ST"]
        "The same; -1 without an answer."
    GrpcStatus "grpc_status" [] []
        "The status of gRPC that a call ended with, 0 to 16; null for what is no call, and where it was cut off."
    BytesIn "bytes_in" ["request_length"] ["U"]
        "Bytes of the request: its head and its body as received, before TLS was put on. With HTTP/2 the body alone."
    BytesOut "bytes_out" ["bytes_sent"] ["B"]
        "Bytes of the answer that were sent, in the same way."
    BodyBytesOut "body_bytes_out" ["body_bytes_sent"] []
        "The same without its head."
    Route "route" [] []
        "The route that took the request, counted from 0 in the order of the file; null where none did."
    Pool "pool" ["proxy_host"] ["b"]
        "The pool's name."
    Endpoint "endpoint" ["upstream_addr"] ["s"]
        "The endpoint that was tried last, as it is written in the configuration."
    Tries "tries" [] []
        "How many endpoints were tried."
    Retries "" [] ["rc"]
        "The same less one."
    Stick "stick" [] []
        "Where the pool is sticky: `kept` (it went where it belongs), `moved` (elsewhere), `new` (it belonged nowhere)."
    HeadMs "head_ms" [] ["TR"]
        "From the first part of the request's head to its end; 0 where it came in one piece."
    TlsMs "tls_ms" [] ["Th"]
        "How long the client's TLS handshake took, with the first request of its connection; 0 with the others."
    QueueMs "queue_ms" [] ["Tw"]
        "How long it stood in line for an endpoint."
    ConnectMs "connect_ms" [] ["Tc"]
        "How long it took to connect to the endpoint; 0 over a connection that was there."
    ConnectSeconds "" ["upstream_connect_time"] []
        "The same in seconds."
    EndpointTlsMs "endpoint_tls_ms" [] []
        "How much of `connect_ms` the TLS handshake with the endpoint took."
    FirstByteMs "first_byte_ms" [] ["Tr"]
        "From the pick of the last endpoint to the first byte of its answer."
    FirstByteSeconds "" ["upstream_header_time"] []
        "The same in seconds."
    EndpointMs "endpoint_ms" [] []
        "From the pick of the last endpoint to the end of its answer."
    EndpointSeconds "" ["upstream_response_time"] []
        "The same in seconds."
    TotalMs "total_ms" [] ["Ta", "Tt"]
        "From the beginning of the request to the end of the answer."
    TotalSeconds "" ["request_time"] []
        "The same in seconds."
    End "end" [] []
        "`ok`, or why the request was not served, or not to its end: the causes of [metrics.md](metrics.md)."
    Fault "fault" [] []
        "Whose fault that was: `client`, `endpoint` or `subak`."
    EndLetters "" [] ["ts", "tsc"]
        "The same in HAProxy's two letters: who ended it, in which phase."
    Decision "decision" ["request_id"] ["ID"]
        "The decision's id, 16 hexadecimal digits."
    Tls "tls" ["ssl_protocol"] ["sslv"]
        "`TLSv1.2` or `TLSv1.3`, where the client came by TLS."
    Generation "generation" [] []
        "The generation of the configuration that it was served by."
    Pid "pid" ["pid"] ["pid"]
        "The process's number."
    Hostname "hostname" ["hostname"] ["H"]
        "The machine's name."
}

impl Field {
    /// Whether it is a string in JSON, of our own words, and never null.
    pub(crate) fn is_always_a_string(self) -> bool {
        matches!(self, Field::Time | Field::Scheme | Field::Protocol | Field::End)
    }

    /// The field of this key in JSON.
    pub(crate) fn by_json(key: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| !key.is_empty() && field.json() == key)
    }

    /// The field that nginx calls so.
    pub(crate) fn by_nginx(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.nginx().contains(&name))
    }

    /// The field that HAProxy calls so.
    pub(crate) fn by_haproxy(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.haproxy().contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::Field;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_means_one_field_and_every_field_has_a_name() {
        let (mut json, mut nginx, mut haproxy) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for field in Field::ALL {
            let names = field.nginx().len() + field.haproxy().len();
            assert!(!field.json().is_empty() || names > 0, "{field:?}");
            assert!(field.json().is_empty() || json.insert(field.json()), "{field:?}");
            assert!(field.nginx().iter().all(|name| nginx.insert(*name)), "{field:?}");
            assert!(field.haproxy().iter().all(|name| haproxy.insert(*name)), "{field:?}");
            assert!(field.meaning().ends_with('.'), "{field:?}");
        }
    }
}
