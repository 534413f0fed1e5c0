//! `shadow` of a pool: algorithms that decide beside its own.
//!
//! What the pool could not have as its own algorithm, it cannot have as a shadow either. The pool's own
//! may be one of them: how far that agrees with itself is what others can be compared with.

use subak_balance::Algorithm;

use super::{Reader, View, balance};
use crate::defaults::MAX_SHADOWS;
use crate::diagnostic::{Diagnostic, Span};
use crate::model::{Endpoint, Shadow};

/// The shadows of a pool with these endpoints.
pub(super) fn read(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    endpoints: &[Endpoint],
) -> Vec<Shadow> {
    let mut known: Vec<(Span, Shadow)> = Vec::new();
    for (index, node) in view.items("shadow").iter().enumerate() {
        if index == MAX_SHADOWS {
            let message = format!("a pool has at most {MAX_SHADOWS} shadows");
            let label = format!("this is number {}", index + 1);
            let help = "each costs every request a pick; compare some now and others later";
            reader.push(Diagnostic::error(node.span, message).label(label).help(help));
        }
        let Some((algorithm, name)) = balance::named(reader, Some(node)) else { continue };
        if let Some((first, _)) = known.iter().find(|(_, shadow)| shadow.algorithm == algorithm) {
            let message = format!("the shadow {name} is listed twice");
            let diagnostic =
                Diagnostic::error(node.span, message).label("decides as the other does");
            reader.push(diagnostic.related(*first, "the first one"));
            continue;
        }
        takes_changing_weights(reader, view, node.span, &algorithm);
        balance::check(reader, node.span, &algorithm, endpoints);
        known.push((node.span, Shadow { name: name.into(), algorithm }));
    }
    known.into_iter().map(|(_, shadow)| shadow).collect()
}

/// Says when weights are to change all the time, which this algorithm would not take.
fn takes_changing_weights(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    place: Span,
    algorithm: &Algorithm,
) {
    let Err(error) = algorithm.require_changing_weights() else { return };
    for key in ["slow_start", "weigher"] {
        let Some(entry) = view.entry(key) else { continue };
        let message = format!("the shadow {} does not go with `{key}`", error.name);
        let diagnostic = Diagnostic::error(place, message).label(error.to_string());
        let diagnostic = diagnostic.related(entry.key_span, "changes weights");
        reader.push(diagnostic.help("the pool could not have it as its algorithm: leave one out"));
    }
}
