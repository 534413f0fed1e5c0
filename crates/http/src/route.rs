//! Which route takes a request? The first, in the order of the file, whose conditions all hold.
//!
//! Conditions are tried cheapest first; [`Route::tell`] goes through all of them in the order in which
//! people read them.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use subak_config as config;
use subak_config::{ErrorPages, HeaderEdits, PathPattern, Redirect, Respond, Test};
use subak_message::RequestHead;
use subak_telemetry::RouteMetrics;

use crate::limits::Bounds;
use crate::plan::PoolPlan;
use crate::split::Split;

/// A route, ready to be matched.
#[derive(Debug)]
pub(crate) struct Route {
    /// Cheapest first.
    conditions: Box<[Condition]>,
    pub(crate) action: Action,
    /// Before the listener's.
    pub(crate) error_pages: ErrorPages,
    /// The listener's and the route's changes to answers that are made here.
    pub(crate) answer_edits: Vec<HeaderEdits>,
    /// What it asks of requests beside the listener's; none: nothing.
    pub(crate) bounds: Option<Box<Bounds>>,
    pub(crate) summary: Summary,
    /// Goes on over reloads with the route of the same summary.
    pub(crate) metrics: Arc<RouteMetrics>,
}

/// A route in two phrases, for people.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Summary {
    /// What it asks of a request.
    pub matches: String,
    /// What it does with it.
    pub action: String,
}

impl Summary {
    /// Of a route; without one, of the listener's own pools.
    pub(crate) fn new(route: Option<&config::Route>, action: &config::Action) -> Summary {
        let asked: Vec<String> =
            route.map(conditions).into_iter().flatten().map(|one| one.to_string()).collect();
        let matches = match (route, asked.is_empty()) {
            (None, _) => "everything else".to_owned(),
            (Some(_), true) => "everything".to_owned(),
            (Some(_), false) => asked.join(", "),
        };
        Summary { matches, action: action.to_string() }
    }
}

/// What a route does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Balance over a pool.
    Pool(Arc<PoolPlan>),
    /// Balance over one of several pools.
    Split(Split),
    /// Send the client elsewhere.
    Redirect(Redirect),
    /// Answer at once.
    Respond(Respond),
}

impl Action {
    /// Every pool that a request can go to, as it is used here.
    pub(crate) fn plans(&self) -> Vec<&PoolPlan> {
        match self {
            Action::Pool(plan) => vec![plan],
            Action::Split(split) => split.sides().collect(),
            Action::Redirect(_) | Action::Respond(_) => Vec::new(),
        }
    }
}

impl Route {
    /// A route with the conditions of `route`; without one it takes every request.
    pub(crate) fn new(
        route: Option<&config::Route>,
        action: Action,
        error_pages: ErrorPages,
        answer_edits: Vec<HeaderEdits>,
        (summary, metrics): (Summary, Arc<RouteMetrics>),
    ) -> Route {
        let all = route.map(conditions).into_iter().flatten();
        let mut conditions: Vec<Condition> =
            all.enumerate().map(|(place, one)| Condition { one, place }).collect();
        conditions.sort_by_key(Condition::cost);
        let (conditions, bounds) = (conditions.into(), None);
        Route { conditions, action, error_pages, answer_edits, bounds, summary, metrics }
    }

    /// The same within these bounds.
    pub(crate) fn within(self, bounds: Option<Box<Bounds>>) -> Route {
        Route { bounds, ..self }
    }

    /// Whether this route takes the request.
    #[inline]
    pub(crate) fn matches(&self, head: &RequestHead, client: Option<IpAddr>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(head, client))
    }

    /// Every condition with whether it holds, in the order of the reference.
    pub(crate) fn tell<'a>(
        &'a self,
        head: &RequestHead,
        client: Option<IpAddr>,
    ) -> Vec<(&'a config::Condition, bool)> {
        let mut told: Vec<_> = self.conditions.iter().collect();
        told.sort_by_key(|condition| condition.place);
        told.into_iter().map(|condition| (&condition.one, condition.holds(head, client))).collect()
    }
}

/// What has to hold, as people read it.
fn conditions(route: &config::Route) -> impl Iterator<Item = config::Condition> {
    let hosts = (!route.hosts.is_empty()).then(|| Test::Host(route.hosts.clone()));
    let path = (route.path != PathPattern::Any).then(|| Test::Path(route.path.clone()));
    let own = hosts.into_iter().chain(path);
    let own = own.map(|test| config::Condition { negated: false, test });
    own.chain(route.conditions.iter().cloned())
}

/// One thing that has to hold.
#[derive(Debug)]
pub(crate) struct Condition {
    one: config::Condition,
    /// Among the conditions of its route, as people read them.
    place: usize,
}

impl Condition {
    /// Whether it holds of this request.
    #[inline]
    pub(crate) fn holds(&self, head: &RequestHead, client: Option<IpAddr>) -> bool {
        let is_met = match &self.one.test {
            Test::Host(hosts) => hosts.iter().any(|host| host.matches(head.host())),
            Test::Path(path) => path.matches(head.compared_path()),
            test => return is_met(test, self.one.negated, head, client) != self.one.negated,
        };
        is_met != self.one.negated
    }

    /// Comparisons of a few bytes, then searches among fields, then expressions.
    fn cost(&self) -> u8 {
        match &self.one.test {
            Test::Method(_) => 0,
            Test::Host(_) => 1,
            Test::Path(PathPattern::Regex(_)) => 7,
            Test::Path(_) => 2,
            Test::Client(_) => 3,
            Test::Query(..) => 4,
            Test::Header(..) => 5,
            Test::Cookie(..) => 6,
        }
    }
}

/// The tests that few routes have, kept apart from the path of all requests. Of several values of a name
/// one is enough, and where the test is `negated` all have to meet it: either way the condition holds as
/// soon as one value makes it hold, whichever of them the endpoint goes by.
fn is_met(test: &Test, negated: bool, head: &RequestHead, client: Option<IpAddr>) -> bool {
    let matches = |patterns: &[config::ValuePattern],
                   values: &mut dyn Iterator<Item = Cow<'_, [u8]>>| {
        match negated {
            true => config::all_match(patterns, values),
            false => config::any_matches(patterns, values),
        }
    };
    match test {
        Test::Host(hosts) => hosts.iter().any(|host| host.matches(head.host())),
        Test::Path(path) => path.matches(head.compared_path()),
        Test::Method(methods) => {
            methods.iter().any(|method| method.as_bytes() == head.method_text())
        }
        Test::Client(networks) => networks.contains(client),
        Test::Header(name, patterns) => {
            let values = head.fields.get_all_named(name.as_str().as_bytes());
            matches(patterns, &mut values.map(Cow::Borrowed))
        }
        Test::Cookie(name, patterns) => {
            matches(patterns, &mut head.fields.cookies(name.as_bytes()).map(Cow::Borrowed))
        }
        Test::Query(name, patterns) => {
            matches(patterns, &mut config::parameters(head.query(), name.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests;
