//! What a path names, and what may be done with it.

use http::{Method, StatusCode};

use crate::answer::Refusal;

/// What a path names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Resource {
    /// `/v1/status`
    Status,
    /// `/metrics`
    Metrics,
    /// `/v1/explain`
    Explain,
    /// `/v1/picks`
    Picks,
    /// `/v1/pools/{pool}/endpoints/{endpoint}`
    Endpoint { pool: String, endpoint: String },
}

const PATHS: &str = "there are /v1/status, /v1/pools/{pool}/endpoints/{endpoint}, /v1/explain, /v1/picks and /metrics";

impl Resource {
    /// # Errors
    /// 404 for a path that names nothing, 400 for one that cannot be read.
    pub(crate) fn find(path: &str) -> Result<Resource, Refusal> {
        let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        match segments[..] {
            ["v1", "status"] => Ok(Resource::Status),
            ["metrics"] => Ok(Resource::Metrics),
            ["v1", "explain"] => Ok(Resource::Explain),
            ["v1", "picks"] => Ok(Resource::Picks),
            ["v1", "pools", pool, "endpoints", endpoint] => {
                Ok(Resource::Endpoint { pool: decode(pool)?, endpoint: decode(endpoint)? })
            }
            _ => {
                let error = format!("nothing is at {path}");
                Err(Refusal::new(StatusCode::NOT_FOUND, error, PATHS))
            }
        }
    }

    /// # Errors
    /// 405 for a method that does nothing here.
    pub(crate) fn check(&self, method: &Method) -> Result<(), Refusal> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match self {
            Resource::Status | Resource::Metrics | Resource::Picks if reads => Ok(()),
            Resource::Status | Resource::Metrics | Resource::Picks => {
                Err(Refusal::method("GET, HEAD"))
            }
            Resource::Explain if *method == Method::POST => Ok(()),
            Resource::Explain => Err(Refusal::method("POST")),
            Resource::Endpoint { .. } if reads => Ok(()),
            Resource::Endpoint { .. } if matches!(*method, Method::PUT | Method::PATCH) => Ok(()),
            Resource::Endpoint { .. } => Err(Refusal::method("GET, HEAD, PUT, PATCH")),
        }
    }
}

/// A segment without its percent-encoding: an endpoint on a unix socket has slashes in its name.
pub(crate) fn decode(segment: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.first_chunk::<2>().and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else { return Err(unreadable(segment)) };
        bytes.push(byte);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| unreadable(segment))
}

fn unreadable(segment: &str) -> Refusal {
    let error = format!("{segment} cannot be read");
    let hint = "a % and two hexadecimal digits stand for a byte, bytes for UTF-8: / is %2F";
    Refusal::new(StatusCode::BAD_REQUEST, error, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoint(path: &str) -> Result<(String, String), u16> {
        match Resource::find(path) {
            Ok(Resource::Endpoint { pool, endpoint }) => Ok((pool, endpoint)),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.status.as_u16()),
        }
    }

    #[test]
    fn paths_name_resources() {
        assert_eq!(Resource::find("/v1/status"), Ok(Resource::Status));
        assert_eq!(Resource::find("/metrics"), Ok(Resource::Metrics));
        let pair = |pool: &str, endpoint: &str| Ok((pool.to_owned(), endpoint.to_owned()));
        let found = endpoint("/v1/pools/app/endpoints/10.0.0.2:8080");
        assert_eq!(found, pair("app", "10.0.0.2:8080"));
        assert_eq!(endpoint("/v1/pools/app/endpoints/[::1]:80"), pair("app", "[::1]:80"));
        let found = endpoint("/v1/pools/a%2Db/endpoints/unix:%2Frun%2fapp.sock");
        assert_eq!(found, pair("a-b", "unix:/run/app.sock"));
        for nothing in ["", "/", "/v1", "/v1/status/", "/v1/pools/a/endpoints", "/v2/status", "//"]
        {
            assert_eq!(endpoint(nothing), Err(404), "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn every_name_can_be_written_in_a_path(pool in "\\PC*", endpoint in any::<String>()) {
            let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            let path = format!("/v1/pools/{}/endpoints/{}", encode(&pool), encode(&endpoint));
            prop_assert_eq!(Resource::find(&path), Ok(Resource::Endpoint { pool, endpoint }));
        }

        #[test]
        fn no_path_is_too_odd_to_be_answered(path in any::<String>()) {
            let under = format!("/v1/pools/a/endpoints/{path}");
            for path in [path, under] {
                if let Err(refusal) = Resource::find(&path) {
                    prop_assert!(matches!(refusal.status.as_u16(), 400 | 404));
                }
            }
        }
    }

    #[test]
    fn broken_encodings_are_refused() {
        for broken in ["%", "%2", "%zz", "a%", "%+1", "%ff"] {
            assert_eq!(
                endpoint(&format!("/v1/pools/app/endpoints/{broken}")),
                Err(400),
                "{broken}"
            );
        }
    }

    #[test]
    fn what_reads_only_takes_get_and_head() {
        let status = |resource: &Resource, method: &Method| resource.check(method).is_ok();
        let one = Resource::Endpoint { pool: String::new(), endpoint: String::new() };
        for method in [Method::GET, Method::HEAD] {
            assert!(status(&Resource::Status, &method) && status(&Resource::Metrics, &method));
            assert!(status(&one, &method));
        }
        for method in [Method::PUT, Method::PATCH] {
            assert!(!status(&Resource::Status, &method) && status(&one, &method));
        }
        for method in [Method::POST, Method::DELETE, Method::OPTIONS, Method::TRACE] {
            assert!(!status(&Resource::Metrics, &method) && !status(&one, &method));
        }
    }
}
