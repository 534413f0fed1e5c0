//! The latest picks, one a line; and one of them with all that was looked at.

use super::table::{Side, aligned};
use super::{Style, number, safe};
use crate::picks::{NamedPick, Picks};

/// The latest picks, the newest first.
pub fn picks(told: &Picks, style: Style) -> String {
    let head = ["decision", "ago", "client", "pool", "endpoint", "by", "outcome", "took"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(told.picks.iter().map(row));
    let sides = {
        use Side::{Left, Right};
        [Left, Right, Left, Left, Left, Left, Left, Right]
    };
    let lines = aligned(&sides, &rows);
    let mut text = vec![style.faint(&lines[0])];
    for (line, pick) in lines[1..].iter().zip(&told.picks) {
        text.push(if has_failed(pick) { style.bad(line) } else { line.clone() });
    }
    text.join("\n") + "\n"
}

fn has_failed(pick: &NamedPick) -> bool {
    pick.failure.is_some()
        || pick.status.is_some_and(|status| status >= 500)
        || pick.endpoint.is_none()
}

fn row(pick: &NamedPick) -> Vec<String> {
    vec![
        pick.decision.clone().unwrap_or_default(),
        ago(pick.age_s),
        pick.client.clone().unwrap_or_default(),
        pick.pool.clone(),
        pick.endpoint.clone().unwrap_or_else(|| "none".into()),
        pick.by.replace('_', " "),
        outcome(pick),
        pick.took_ms.map_or_else(String::new, |took| format!("{} ms", number(took))),
    ]
}

fn ago(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.1} s"),
        ..3600.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

fn outcome(pick: &NamedPick) -> String {
    match (&pick.failure, pick.status, &pick.outcome) {
        (Some(failure), _, _) => safe(failure),
        (None, Some(status), _) => status.to_string(),
        (None, None, Some(outcome)) => outcome.clone(),
        (None, None, None) if pick.endpoint.is_none() => "nobody was left".into(),
        (None, None, None) => "under way, or passed over".into(),
    }
}

/// One pick with all that it looked at.
pub fn one_pick(pick: &NamedPick, style: Style) -> String {
    let NamedPick { pool, generation, version, .. } = pick;
    let decision = pick.decision.as_deref().unwrap_or("without an id");
    let mut lines = vec![style.strong(&format!("decision  {decision}, {} ago", ago(pick.age_s)))];
    lines.push(format!(
        "client    {}",
        pick.client.as_deref().unwrap_or("a process without a name")
    ));
    lines.push(format!(
        "pool      {pool}, generation {generation}, balancer {version}, {} eligible",
        pick.eligible
    ));
    if let Some(key) = &pick.key {
        lines.push(format!("key       {:?}", safe(key)));
    }
    if let Some(ticket) = pick.ticket {
        lines.push(format!("ticket    {ticket}"));
    }
    if !pick.tried.is_empty() {
        lines.push(format!("tried     {}", pick.tried.join(", ")));
    }
    if !pick.compared.is_empty() {
        let picked = |name: &str| pick.endpoint.as_deref() == Some(name);
        let mut rows = vec![["", "endpoint", "weight", "score"].map(str::to_owned).to_vec()];
        rows.extend(pick.compared.iter().map(|one| {
            let mark = if picked(&one.endpoint) { ">" } else { "" };
            vec![mark.to_owned(), one.endpoint.clone(), one.weight.to_string(), number(one.score)]
        }));
        let table = aligned(&[Side::Left, Side::Left, Side::Right, Side::Right], &rows);
        lines.push(String::new());
        lines.push(style.faint(&format!("  {}", table[0])));
        for (line, one) in table[1..].iter().zip(&pick.compared) {
            let line = format!("  {line}");
            lines.push(if picked(&one.endpoint) { style.good(&line) } else { line });
        }
        let hidden = pick.compared_count - pick.compared.len().min(pick.compared_count);
        if hidden > 0 {
            lines.push(style.faint(&format!("     and {hidden} others")));
        }
        lines.push(String::new());
    }
    if let Some(unit) = &pick.unit {
        lines.push(format!("score     {unit}"));
    }
    match pick.replays {
        Some(true) => lines.push("replayed  the same".into()),
        Some(false) => lines.push(style.bad("replayed  another: please report this")),
        None => {}
    }
    let endpoint = pick.endpoint.as_deref().unwrap_or("none");
    lines.push(format!("picked    {endpoint}, by {}", pick.by.replace('_', " ")));
    let took = pick.took_ms.map_or_else(String::new, |took| format!(" after {} ms", number(took)));
    let outcome = format!("{}{took}", outcome(pick));
    let outcome = if has_failed(pick) { style.bad(&outcome) } else { style.good(&outcome) };
    lines.push(format!("outcome   {outcome}"));
    lines.join("\n") + "\n"
}
