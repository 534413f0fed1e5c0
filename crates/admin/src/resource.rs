//! What a path names, and what may be done with it: one table.

use http::{Method, StatusCode};

use crate::answer::Refusal;

/// Every path with its methods. `{…}` stands for one segment. HEAD goes wherever GET does.
pub(crate) const ROUTES: &[Route] = &[
    route("/v1/status", &["GET"]),
    route("/v1/pools", &["GET"]),
    route("/v1/pools/{pool}", &["GET", "PATCH"]),
    route("/v1/pools/{pool}/endpoints", &["POST"]),
    route("/v1/pools/{pool}/endpoints/{endpoint}", &["GET", "PUT", "PATCH", "DELETE"]),
    route("/v1/config", &["GET"]),
    route("/v1/config/text", &["GET"]),
    route("/v1/config/diff", &["GET"]),
    route("/v1/config/reload", &["POST"]),
    route("/v1/config/save", &["POST"]),
    route("/v1/config/changes", &["DELETE"]),
    route("/v1/config/history", &["GET"]),
    route("/v1/config/history/{generation}", &["GET"]),
    route("/v1/config/rollback", &["POST"]),
    route("/v1/limits", &["GET"]),
    route("/v1/limits/{limit}/keys/{key}", &["DELETE"]),
    route("/v1/events", &["GET"]),
    route("/v1/explain", &["POST"]),
    route("/v1/picks", &["GET"]),
    route("/v1/openapi.json", &["GET"]),
    route("/metrics", &["GET"]),
];

/// A path and what it takes.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) methods: &'static [&'static str],
}

const fn route(path: &'static str, methods: &'static [&'static str]) -> Route {
    Route { path, methods }
}

/// A path of the table with what its `{…}` stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Resource {
    pub(crate) route: &'static Route,
    names: Vec<String>,
}

impl Resource {
    /// # Errors
    /// 404 for a path that names nothing, 400 for one that cannot be read.
    pub(crate) fn find(path: &str) -> Result<Resource, Refusal> {
        let segments: Vec<&str> = path.split('/').collect();
        let Some(route) = ROUTES.iter().find(|route| route.takes(&segments)) else {
            let error = format!("nothing is at {path}");
            let hint = "GET /v1/openapi.json says what there is; begin with /v1/status";
            return Err(Refusal::new(StatusCode::NOT_FOUND, error, hint));
        };
        let named = route.path.split('/').zip(segments).filter(|(own, _)| own.starts_with('{'));
        let names = named.map(|(_, segment)| decode(segment)).collect::<Result<_, _>>()?;
        Ok(Resource { route, names })
    }

    /// # Errors
    /// 405 for a method that does nothing here.
    pub(crate) fn check(&self, method: &Method) -> Result<(), Refusal> {
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        if self.route.methods.contains(&method) {
            return Ok(());
        }
        let mut allowed = self.route.methods.to_vec();
        if allowed.first() == Some(&"GET") {
            allowed.insert(1, "HEAD");
        }
        Err(Refusal::method(&allowed.join(", ")))
    }

    /// What the first `{…}` stands for.
    pub(crate) fn first(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// What the second stands for.
    pub(crate) fn second(&self) -> &str {
        self.names.get(1).map_or("", String::as_str)
    }
}

impl Route {
    fn takes(&self, segments: &[&str]) -> bool {
        let own = self.path.split('/');
        own.clone().count() == segments.len()
            && own.zip(segments).all(|(own, segment)| match own.starts_with('{') {
                true => !segment.is_empty(),
                false => own == *segment,
            })
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
            Ok(found) if found.route.path.ends_with("{endpoint}") => {
                Ok((found.first().to_owned(), found.second().to_owned()))
            }
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.status.as_u16()),
        }
    }

    #[test]
    fn paths_name_resources() {
        for route in ROUTES.iter().filter(|route| !route.path.contains('{')) {
            assert_eq!(Resource::find(route.path).map(|found| found.route), Ok(route));
        }
        let pair = |pool: &str, endpoint: &str| Ok((pool.to_owned(), endpoint.to_owned()));
        let found = endpoint("/v1/pools/app/endpoints/10.0.0.2:8080");
        assert_eq!(found, pair("app", "10.0.0.2:8080"));
        assert_eq!(endpoint("/v1/pools/app/endpoints/[::1]:80"), pair("app", "[::1]:80"));
        let found = endpoint("/v1/pools/a%2Db/endpoints/unix:%2Frun%2fapp.sock");
        assert_eq!(found, pair("a-b", "unix:/run/app.sock"));
        for nothing in ["", "/", "/v1", "/v1/status/", "/v1/pools/a/endpoints/", "/v2/status", "//"]
        {
            assert_eq!(endpoint(nothing), Err(404), "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn every_name_can_be_written_in_a_path(pool in "\\PC+", endpoint in "(?s:.+)") {
            let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            let path = format!("/v1/pools/{}/endpoints/{}", encode(&pool), encode(&endpoint));
            let found = Resource::find(&path).expect("it is a path");
            prop_assert_eq!((found.first(), found.second()), (&*pool, &*endpoint));
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
    fn a_path_takes_the_methods_of_the_table_and_says_which() {
        let takes = |path: &str, method: &Method| {
            Resource::find(path).and_then(|found| found.check(method)).is_ok()
        };
        let one = "/v1/pools/a/endpoints/b";
        for method in [Method::GET, Method::HEAD] {
            assert!(takes("/v1/status", &method) && takes("/metrics", &method));
            assert!(takes(one, &method) && !takes("/v1/config/reload", &method));
        }
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(!takes("/v1/status", &method) && takes(one, &method));
        }
        for method in [Method::POST, Method::OPTIONS, Method::TRACE] {
            assert!(!takes("/metrics", &method) && !takes(one, &method));
        }
        assert!(takes("/v1/config/reload", &Method::POST));
    }

    #[test]
    fn the_table_and_the_description_have_the_same_routes() {
        let text = include_str!("../openapi.json");
        let description: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let mut described = Vec::new();
        for (path, item) in description["paths"].as_object().expect("paths") {
            let methods = item.as_object().expect("an object").keys();
            for method in methods.filter(|method| *method != "parameters") {
                described.push((path.clone(), method.to_ascii_uppercase()));
            }
        }
        let pair = |path: &str, method: &str| (path.to_owned(), method.to_owned());
        let mut served: Vec<_> = ROUTES
            .iter()
            .flat_map(|route| route.methods.iter().map(|method| pair(route.path, method)))
            .collect();
        described.sort();
        served.sort();
        assert_eq!(served, described);
    }
}
