//! The vocabulary as Markdown tables, which docs/configuration.md holds between markers.

use std::fmt::Write;

use subak_balance::catalogue::{self, Listing, OptionKind, OptionSpec};

use crate::keys::{Kind, Table, Without};
use crate::scalar;

/// Comment before a generated part of a document; the path of a table (empty: the top level), or
/// `algorithms`, stands between this and [`MARKER_END`].
pub const MARKER_BEGIN: &str = "<!-- keys: ";
/// End of the comment.
pub const MARKER_END: &str = " -->";
/// Comment after a generated part.
pub const MARKER_STOP: &str = "<!-- end -->";

/// One table of the vocabulary: a row for each key.
pub fn table(table: &Table) -> String {
    let mut out = String::from("| key | takes | without it | |\n|---|---|---|---|\n");
    for key in table.keys {
        let without = match key.without {
            Without::Required => "required".to_string(),
            Without::Default(value) => format!("`{}`", escape(value)),
            Without::Absent(words) => escape(words),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {} | {without} | {} For example `{}`. |",
            key.name,
            escape(&takes(&key.kind)),
            escape(key.doc),
            escape(key.example),
        );
    }
    out
}

/// The catalogue of algorithms: a row for each.
pub fn algorithms() -> String {
    let mut out = String::from("| name | also | options | |\n|---|---|---|---|\n");
    for listing in catalogue::all() {
        let options: Vec<String> = listing.options.iter().map(algorithm_option).collect();
        let aliases: Vec<String> =
            listing.aliases.iter().map(|alias| named(listing, alias)).collect();
        let default = if listing.name == catalogue::DEFAULT { " **The default.**" } else { "" };
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {}{default} |",
            listing.name,
            escape(&aliases.join(", ")),
            escape(&options.join("; ")),
            escape(listing.summary),
        );
    }
    out
}

/// An alias with the options that go with it.
fn named(listing: &Listing, alias: &str) -> String {
    let presets = listing.presets.iter().filter(|(of, ..)| *of == alias);
    let presets: Vec<String> =
        presets.map(|(_, option, value)| format!(" (`{option} = {value}`)")).collect();
    format!("`{alias}`{}", presets.join(""))
}

fn algorithm_option(option: &OptionSpec) -> String {
    let default = option.default.map(|default| default.to_string());
    let mark = |value: String| match &default {
        Some(default) if *default == value => format!("`{value}` (default)"),
        _ => format!("`{value}`"),
    };
    let all = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| mark(format!("\"{word}\""))).collect();
        words.join(" or ")
    };
    let takes = match option.kind {
        OptionKind::Words(words) => all(words),
        OptionKind::Text { forms, .. } => all(forms),
        OptionKind::Integer { .. } | OptionKind::Decimal { .. } => {
            let default = default.as_ref().map(|value| format!(" (default `{value}`)"));
            format!("{}{}", option.kind, default.unwrap_or_default())
        }
    };
    format!("`{}` = {takes}: {}", option.name, option.summary)
}

/// A bar would end the cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// What a key takes, in Markdown.
pub fn takes(kind: &Kind) -> String {
    match kind {
        Kind::Boolean => "`true`, `false`".to_string(),
        Kind::Integer { min, max } if *max >= i64::from(u32::MAX) => format!("integer from {min}"),
        Kind::Integer { min, max } => format!("integer {min} to {max}"),
        Kind::Ratio => "number 0 to 1".to_string(),
        Kind::Decimal { min, max } => {
            format!("number {} to {}", scalar::show_per_mille(*min), scalar::show_per_mille(*max))
        }
        Kind::Duration => "duration".to_string(),
        Kind::DurationWithin { min_ms, max_ms } => {
            format!("duration {} to {}", scalar::show_ms(*min_ms), scalar::show_ms(*max_ms))
        }
        Kind::Size { min, max } if *max < i64::MAX as u64 => {
            format!("size {} to {}", scalar::show_size(*min), scalar::show_size(*max))
        }
        Kind::Size { .. } => "size".to_string(),
        Kind::OrUnlimited(inner) => format!("{} or `\"unlimited\"`", takes(inner)),
        Kind::Choice(choices) => {
            choices.iter().map(|choice| format!("`\"{choice}\"`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Text(_) => "string".to_string(),
        Kind::List(inner) => format!("list of {}", takes(inner)),
        Kind::OneOrMany(inner) => format!("{} or list", takes(inner)),
        Kind::Either(kinds) => kinds.iter().map(takes).collect::<Vec<_>>().join(" or "),
        Kind::Table(table) => format!("[table](#{})", anchor(table)),
        Kind::Map(map) => format!("table by {}", map.key),
        Kind::Algorithm => "[algorithm](#algorithms)".to_string(),
    }
}

/// The anchor of a table's heading, which is its path in code.
fn anchor(table: &Table) -> String {
    let kept = |character: &char| character.is_ascii_alphanumeric() || "-_ ".contains(*character);
    table.path.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}
