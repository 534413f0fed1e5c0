//! Which route takes a request? The first, in the order of the file, whose host and path match.

use std::sync::Arc;

use subak_config::{ErrorPages, HeaderEdits, HostPattern, PathPattern, Redirect, Respond};
use subak_message::RequestHead;

use crate::service::PoolPlan;

/// A route, ready to be matched.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) path: PathPattern,
    pub(crate) action: Action,
    /// Before the listener's.
    pub(crate) error_pages: ErrorPages,
    /// The listener's and the route's changes to answers that are made here.
    pub(crate) answer_edits: Vec<HeaderEdits>,
}

/// What a route does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Balance over a pool.
    Pool(Arc<PoolPlan>),
    /// Send the client elsewhere.
    Redirect(Redirect),
    /// Answer at once.
    Respond(Respond),
}

impl Route {
    /// Whether this route takes the request.
    #[inline]
    pub(crate) fn matches(&self, head: &RequestHead) -> bool {
        (self.hosts.is_empty() || self.hosts.iter().any(|host| host.matches(head.host())))
            && self.path.matches(head.normal_path())
    }
}
