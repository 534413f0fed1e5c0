//! The measuring side of Subak: endpoints that answer, clients that ask, and
//! the arithmetic that says what it cost.
//!
//! Everything here is built to be *cheaper than what it measures*. On a machine
//! with two cores the balancer has one, and the endpoints and the load
//! generator share the other; the balancer's cost per request is only visible
//! if that second core never holds it up. So both ends are single threads on
//! raw epoll, with answers prepared beforehand and no allocation per request.
//!
//! | module | what it is |
//! |---|---|
//! | [`endpoint`] | an HTTP/1.1 endpoint: small and 64 KiB answers, named, counted |
//! | [`load`] | the load generator: open and closed loop, HTTP/1.1, HTTP/2, TLS |
//! | [`idle`] | many connections that asked once and then stay silent, by HTTP/1.1, TLS, HTTP/2 or as WebSockets |
//! | [`handshakes`] | TLS handshakes, full or resumed, one after the other on a few threads |
//! | [`secret`] | the certificate balancers are measured with, and clients that trust it |
//! | [`trust`] | whom loads over TLS trust |
//! | [`histogram`] | latencies, to within 0.4 % |
//! | [`process`] | CPU time, memory and descriptors of a running process tree |
//! | [`machine`] | which CPUs may be used, pinning, descriptor limits |
//!
//! The developer tool `subak-bench` (`make bench`) compares balancers with these.
//! It is Linux only, as Subak is.

mod body;
pub mod cgroup;
mod connect;
pub mod endpoint;
mod epoll;
pub mod handshakes;
pub mod histogram;
pub mod idle;
pub mod load;
pub mod machine;
pub mod process;
pub mod secret;
pub mod trust;
