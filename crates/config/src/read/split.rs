//! `split` of a route or of a listener.

use subak_balance::KeySource;

use super::{Reader, View};
use crate::defaults::MAX_SPLIT_SIDES;
use crate::diagnostic::{Diagnostic, Span};
use crate::model::{Name, Side, Split, SplitBy};
use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::vocabulary::{SPLIT, SPLIT_SIDE};

/// `None` when part of it is wrong.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, pools: &[Name]) -> Option<Split> {
    let view = View::of(node, &SPLIT);
    let mut taken: Vec<(Name, Span)> = Vec::new();
    let mut split = Split { sides: Vec::new(), by: SplitBy::Chance, fallback: true };
    let mut whole = true;
    for item in sides(node) {
        let side = View::of(item, &SPLIT_SIDE);
        let Some(pool_node) = side.node("pool") else { continue };
        let Some(pool) = reader.pool_name(pool_node, pools) else {
            whole = false;
            continue;
        };
        if let Some((_, first)) = taken.iter().find(|(known, _)| *known == pool) {
            let problem = Diagnostic::error(pool_node.span, format!("`{pool}` is listed twice"));
            let problem = problem.label("the same pool again").related(*first, "first here");
            reader.push(problem.help("to give a pool more, raise its weight"));
        }
        taken.push((pool.clone(), pool_node.span));
        let weight = side.number("weight").and_then(|weight| u32::try_from(weight).ok());
        split.sides.push(Side { pool, weight: weight.unwrap_or(1) });
    }
    if split.sides.len() > MAX_SPLIT_SIDES {
        let message = format!("a split has at most {MAX_SPLIT_SIDES} pools");
        reader.push(Diagnostic::error(node.span, message));
    } else if whole && split.sides.iter().all(|side| side.weight == 0) {
        let problem = Diagnostic::error(node.span, "no pool of this split takes anything");
        reader.push(problem.label("expected a pool with a weight above 0"));
    }
    split.fallback = view.boolean("fallback", true);
    if let Some(node) = view.node("by") {
        split.by = SplitBy::Key(reader.text(node, key)?);
    }
    if let Some(name) = view.string("cookie") {
        split.by = SplitBy::Cookie(name.into());
    }
    whole.then_some(split)
}

/// The tables of the pools, in either form of a split.
pub(super) fn sides(node: &Node) -> &[Node] {
    match &node.value {
        Value::Array(items) => items,
        _ => View::of(node, &SPLIT).items("pools"),
    }
}

fn key(text: &str) -> Result<KeySource, Problem> {
    let expected = "expected \"source\", \"uri\", \"path\", \"header:NAME\", \"cookie:NAME\" or \"query:NAME\"";
    match KeySource::parse(text) {
        Some(KeySource::FiveTuple) => {
            Err(Problem::expected("a connection is no client that could stay", expected))
        }
        Some(source) => Ok(source),
        None => Err(Problem::expected("this names no key", expected)),
    }
}
