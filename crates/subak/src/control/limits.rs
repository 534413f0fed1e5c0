//! The limits of what serves, as the Admin API shows them.

use std::sync::Arc;

use subak_admin::{KeyView, Keys, LimitView};
use subak_base::Tick;
use subak_http::{Limit, Service};

/// The limits of these services, in their order.
pub(super) fn views<'a>(services: impl Iterator<Item = &'a Service>) -> Vec<LimitView> {
    let of = |service: &'a Service| {
        let listener = service.name();
        service.limits().map(move |limit| view(listener, limit))
    };
    services.flat_map(of).collect()
}

fn view(listener: &str, limit: Limit) -> LimitView {
    LimitView {
        name: limit.name().to_owned(),
        listener: listener.to_owned(),
        kind: limit.kind().name(),
        by: limit.key(),
        allows: limit.allows(),
        is_dry_run: limit.is_dry_run(),
        refused: limit.refused(),
        forgotten: limit.forgotten(),
        keys: Arc::new(OfLimit(limit)),
    }
}

/// The keys of a limit.
#[derive(Debug)]
struct OfLimit(Limit);

impl Keys for OfLimit {
    fn nearest(&self, most: usize, now: Tick) -> (Vec<KeyView>, usize, usize) {
        let status = self.0.status(most, now);
        let view = |key: subak_http::LimitedKey| KeyView {
            key: key.key,
            left: key.left,
            most: key.most,
            full_in_s: key.full_in_s,
        };
        (status.nearest.into_iter().map(view).collect(), status.keys, status.places)
    }

    fn clear(&self, key: &str, now: Tick) -> bool {
        self.0.clear(key, now)
    }
}
