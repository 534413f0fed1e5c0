//! Header names that the configuration reads or writes, and what clients may not do with them.
//!
//! A limit by `header:X-Api-Key`, a route by `header = { X-Role = … }` and `remove = ["X-Internal"]`
//! decide by a name. A client gets round such a decision when the endpoint reads another field than
//! Subak does. So of these names
//!
//! - other spellings that CGI-style endpoints read alike ([`is_alike`]) do not reach an endpoint;
//! - `Connection` may not name one that is read: the request is refused;
//! - request trailers have none of them.
//!
//! A listener whose configuration reads no header pays one branch a request.

use subak_balance::KeySource;
use subak_config::{self as config, Action, HeaderEdits, LimitKey, Split, SplitBy, Test};
use subak_message::{Fields, is_alike};

/// The header names that decide something at one listener.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// Of keys and conditions; unique.
    read: Box<[Box<[u8]>]>,
}

impl Guard {
    /// Of a listener of this configuration: its limits, routes, splits and pools.
    pub(crate) fn of(listener: &config::Listener, config: &config::Config) -> Guard {
        let mut read: Vec<Box<[u8]>> = Vec::new();
        let mut note = |name: &str| {
            if !read.iter().any(|known| known.eq_ignore_ascii_case(name.as_bytes())) {
                read.push(name.as_bytes().into());
            }
        };
        let limits = listener.routes.iter().map(|route| &route.limits);
        let rates = limits.clone().flat_map(|limits| &limits.rates).chain(&listener.rates);
        let in_flight = limits.flat_map(|limits| &limits.in_flight).chain(&listener.in_flight);
        for key in rates.map(|limit| &limit.key).chain(in_flight.map(|limit| &limit.key)) {
            if let LimitKey::Header(name) = key {
                note(name);
            }
        }
        for condition in listener.routes.iter().flat_map(|route| &route.conditions) {
            if let Test::Header(name, _) = &condition.test {
                note(name.as_str());
            }
        }
        let actions = listener.routes.iter().map(|route| &route.action);
        let by_route = actions.clone().filter_map(|action| match action {
            Action::Split(split) => Some(split),
            _ => None,
        });
        for split in by_route.chain(&listener.split) {
            if let Split { by: SplitBy::Key(KeySource::Header(name)), .. } = split {
                note(name);
            }
        }
        let pools = actions.flat_map(Action::pools).chain(listener.own_pools());
        for pool in pools.filter_map(|name| config.pool(name)) {
            let shadows = pool.shadows.iter().map(|shadow| &shadow.algorithm);
            for algorithm in shadows.chain([&pool.algorithm]) {
                if let Some(KeySource::Header(name)) = algorithm.key() {
                    note(name);
                }
            }
        }
        Guard { read: read.into() }
    }

    /// Whether the `Connection` field of a request names what is read.
    #[cold]
    pub(crate) fn is_nominated(&self, fields: &Fields) -> bool {
        self.read.iter().any(|name| fields.is_nominated(name))
    }

    /// Takes out other spellings of what is read.
    #[inline]
    pub(crate) fn remove_spellings(&self, fields: &mut Fields) {
        if !self.read.is_empty() {
            self.remove_some(fields);
        }
    }

    #[inline(never)]
    fn remove_some(&self, fields: &mut Fields) {
        let goes = |name: &[u8]| {
            let is_other = |read: &[u8]| is_alike(read, name) && !read.eq_ignore_ascii_case(name);
            self.read.iter().any(|read| is_other(read))
        };
        if fields.iter().any(|field| goes(field.name)) {
            fields.remove_where(|field| goes(field.name));
        }
    }

    /// Takes out of a request's trailers what the configuration reads of a head, removes or sets.
    pub(crate) fn clean_trailers(&self, trailers: &mut Fields, edits: &[HeaderEdits]) {
        trailers.remove_where(|field| {
            let written = edits.iter().flat_map(|edits| {
                let set = edits.set.iter().map(|(name, _)| name);
                edits.remove.iter().chain(set).map(|name| name.as_str().as_bytes())
            });
            self.read.iter().map(|name| &**name).chain(written).any(|one| is_alike(one, field.name))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config() -> config::Config {
        let text = r#"
[listener.web]
bind = "0.0.0.0:80"
request_headers = { remove = ["X-Gone"], set = { X-Set = "1" }, add = { X-Added = "2" } }
rate = { rate = "5/s", key = "header:X-Api-Key" }
split = { pools = [{ pool = "app" }, { pool = "other" }], by = "header:X-User" }
[[listener.web.route]]
header = { X-Role = "admin" }
not = { header = { X-Staff = "1" } }
limits = { in_flight = { most = 5, key = "header:x-api-key" } }
pool = "app"
[pool.app]
endpoints = ["10.0.0.2:80"]
balance = { algorithm = "hash", key = "header:X-Tenant" }
[pool.other]
endpoints = ["10.0.0.3:80"]
shadow = [{ algorithm = "maglev", key = "header:X-Shadow" }]
"#;
        let parsed = subak_config::parse(text, Path::new("subak.toml"));
        parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
    }

    fn guard() -> Guard {
        let config = config();
        Guard::of(&config.listeners[0], &config)
    }

    fn fields(names: &[&str]) -> Fields {
        let mut fields = Fields::new();
        for name in names {
            fields.push_received(name.as_bytes(), b"x").expect("a field");
        }
        fields
    }

    fn names(fields: &Fields) -> Vec<String> {
        fields.iter().map(|field| String::from_utf8_lossy(field.name).into_owned()).collect()
    }

    #[test]
    fn every_name_that_is_read_is_known_once() {
        let mut read: Vec<_> =
            guard().read.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        read.sort();
        assert_eq!(read, ["X-Api-Key", "X-Role", "X-Shadow", "X-Staff", "X-Tenant", "X-User"]);
    }

    #[test]
    fn other_spellings_of_what_is_read_go() {
        let mut all = fields(&["x-role", "X_Role", "x.ROLE", "X-Other", "X_Other"]);
        guard().remove_spellings(&mut all);
        assert_eq!(names(&all), ["x-role", "X-Other", "X_Other"]);
    }

    #[test]
    fn trailers_have_nothing_that_is_read_or_written() {
        let edits = config().listeners[0].request_headers.clone();
        let mut all =
            fields(&["X-Role", "x_tenant", "X.Gone", "x-set", "X-Added", "X-Stays", "X_Stays"]);
        guard().clean_trailers(&mut all, &[edits]);
        assert_eq!(names(&all), ["X-Added", "X-Stays", "X_Stays"]);
    }
}
