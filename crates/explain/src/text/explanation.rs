//! An explanation, top down, the way a request goes.

use subak_pool::NO_FORECAST;

use super::table::{Side, aligned};
use super::{Style, number, safe};
use crate::explanation::{
    Action, Candidate, Explanation, LimitTold, Outcome, PoolTold, RouteTold, Verdict,
};

/// Rows of candidates; more are only counted.
const CANDIDATES_MAX: usize = 40;

/// Routes that do not take the request and do not come close are only counted when there are more.
const ROUTES_MAX: usize = 12;

/// The whole answer.
pub fn explanation(told: &Explanation, style: Style) -> String {
    let mut lines = Vec::new();
    let asked = &told.request;
    let client = told.client.as_deref().unwrap_or("a process without a name");
    let head = format!("{} {} from {client}", safe(&asked.method), safe(&asked.url));
    lines.extend([style.strong(&head), String::new()]);
    lines.push(format!("listener  {}: {}", told.listener.name, told.listener.why));
    routes(told, style, &mut lines);
    lines.extend(told.limits.iter().map(|limit| limit_line(limit, style)));
    lines.extend(told.edits.iter().map(|edit| format!("change    {}", safe(edit))));
    if let Some(pool) = &told.pool {
        of_pool(pool, style, &mut lines);
    }
    let outcome = match &told.outcome {
        Outcome::Sent { endpoint } => {
            style.good(&format!("to {endpoint}{}", by(told.pool.as_ref())))
        }
        Outcome::Closed { reason } => style.bad(&format!("closed: {reason}")),
        Outcome::Waits { reason } => style.bad(&format!("waits: {reason}")),
        Outcome::Answered { status, reason } => match status {
            400.. => style.bad(&format!("answered {status}: {reason}")),
            _ => style.good(&format!("answered {status}: {reason}")),
        },
    };
    lines.push(format!("result    {outcome}"));
    if !told.notes.is_empty() {
        lines.push(String::new());
        lines.extend(told.notes.iter().map(|note| style.faint(&safe(note))));
    }
    lines.join("\n") + "\n"
}

fn limit_line(limit: &LimitTold, style: Style) -> String {
    let LimitTold { name, allows, by, key, left, .. } = limit;
    let rest = match (limit.refuses, limit.is_dry_run, limit.retry_after_ms) {
        (false, ..) => format!("{left} left"),
        (true, true, _) => "would refuse, but this is a dry run".to_owned(),
        (true, false, Some(wait)) => format!("refuses, for {wait} ms more"),
        (true, false, None) => "refuses".to_owned(),
    };
    let line = format!("limit     {name}: {allows} by {} = {:?}: {rest}", safe(by), safe(key));
    if limit.refuses && !limit.is_dry_run { style.bad(&line) } else { line }
}

fn by(pool: Option<&PoolTold>) -> &'static str {
    match pool.and_then(|pool| pool.by.as_deref()) {
        Some("stickiness") => ", where the client belongs",
        Some("last_resort") => ", because nobody better is left",
        _ => "",
    }
}

fn routes(told: &Explanation, style: Style, lines: &mut Vec<String>) {
    let is_shown = |route: &&RouteTold| {
        told.routes.len() <= ROUTES_MAX || matches!(route.verdict, Verdict::Taken | Verdict::Close)
    };
    let mut rows = Vec::new();
    for route in told.routes.iter().filter(is_shown) {
        let index = route.index.map_or("own pool".to_owned(), |index| index.to_string());
        let word = match route.verdict {
            Verdict::Taken => "takes it",
            Verdict::Close => "came close",
            Verdict::Not => "does not match",
            Verdict::Late => "would, but comes later",
        };
        rows.push(vec!["route".to_owned(), index, word.to_owned(), asks(route)]);
    }
    let hidden = told.routes.len() - rows.len();
    let sides = [Side::Left; 4];
    for (line, route) in aligned(&sides, &rows).iter().zip(told.routes.iter().filter(is_shown)) {
        // "route" is 5 letters of a column of 8.
        let line = line.replacen("route  ", "route     ", 1);
        lines.push(match route.verdict {
            Verdict::Taken => style.good(&line),
            Verdict::Close => line,
            Verdict::Not | Verdict::Late => style.faint(&line),
        });
    }
    if hidden > 0 {
        lines.push(format!("route     and {hidden} others that do not match, or come later"));
    }
}

/// What a route asks for, and what it does.
fn asks(route: &RouteTold) -> String {
    let condition = |condition: &crate::Condition| match condition.holds {
        true => safe(&condition.text),
        false => format!("fails: {}", safe(&condition.text)),
    };
    // What keeps it from matching comes first.
    let broken = route.conditions.iter().filter(|condition| !condition.holds);
    let holding = route.conditions.iter().filter(|condition| condition.holds);
    let all: Vec<String> = match route.verdict {
        Verdict::Not | Verdict::Close => broken.chain(holding).map(condition).collect(),
        Verdict::Taken | Verdict::Late => route.conditions.iter().map(condition).collect(),
    };
    let asks = if all.is_empty() { "everything".to_owned() } else { all.join(", ") };
    let does = match &route.action {
        Action::Pool { pool } => format!("pool {pool}"),
        Action::Split { pools } => format!("split over {}", pools.join(", ")),
        Action::Redirect { status, to } => format!("redirect {status} to {}", safe(to)),
        Action::Respond { status } => format!("answer {status}"),
    };
    format!("{asks} -> {does}")
}

fn of_pool(pool: &PoolTold, style: Style, lines: &mut Vec<String>) {
    let PoolTold { name, algorithm, because, .. } = pool;
    lines.push(format!("pool      {name}: {algorithm}; {because}"));
    if let Some(key) = &pool.key {
        let value = match &key.value {
            Some(value) => format!("{} = {:?}", key.source, safe(value)),
            None => format!("{}: this request has none, and is served in turn", key.source),
        };
        lines.push(format!("key       {value}"));
    }
    if let Some(home) = &pool.home {
        let stays = if home.stays { "it stays there" } else { "it cannot stay there now" };
        let line = format!(
            "sticky    the client belongs to {} by its {}: {stays}",
            home.endpoint, home.by
        );
        lines.push(if home.stays { line } else { style.bad(&line) });
    }
    if let Some(ticket) = pool.ticket {
        lines.push(format!("ticket    the next is {ticket}; another request may take it first"));
    }
    let is_thinned = pool.candidates.iter().any(|one| one.ramp < 1.0);
    let score = if pool.unit.is_some() { "score" } else { "" };
    let mut head = vec!["", "endpoint", "weight", "in flight", score];
    head.extend(is_thinned.then_some("its keys"));
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    let shown: Vec<&Candidate> = shown(pool).collect();
    rows.extend(shown.iter().map(|one| row(one, is_thinned)));
    let mut sides = vec![Side::Left, Side::Left, Side::Right, Side::Right, Side::Right];
    sides.extend(is_thinned.then_some(Side::Right));
    sides.push(Side::Left);
    let table = aligned(&sides, &rows);
    lines.extend([String::new(), style.faint(&format!("  {}", table[0]))]);
    for (line, one) in table[1..].iter().zip(&shown) {
        let line = format!("  {line}");
        lines.push(match (one.is_picked, &one.excluded) {
            (true, _) => style.good(&line),
            (false, Some(_)) => style.faint(&line),
            (false, None) => line,
        });
    }
    let hidden = pool.candidates.len() - shown.len();
    if hidden > 0 {
        lines.push(style.faint(&format!("     and {hidden} others")));
    }
    lines.push(String::new());
    if let Some(unit) = &pool.unit {
        lines.push(format!("score     {unit}"));
        lines.push(format!("ties      {}", pool.ties));
    }
    if !pool.passed.is_empty() {
        let passed = pool.passed.join(", ");
        lines.push(format!("passed    picked first, and cannot take it: {passed}"));
    }
    shadows(pool, style, lines);
}

/// What decides beside the pool's algorithm, and what that is not.
fn shadows(pool: &PoolTold, style: Style, lines: &mut Vec<String>) {
    for shadow in &pool.shadows {
        let choice = match (&shadow.picked, shadow.is_stopped) {
            (_, true) => "has failed, and is asked no more until a reload".to_owned(),
            (None, _) => "would find nobody".to_owned(),
            (Some(endpoint), _) if pool.picked.as_ref() == Some(endpoint) => {
                format!("would choose the same, {endpoint}")
            }
            (Some(endpoint), _) => format!("would choose {endpoint}"),
        };
        lines.push(format!("shadow    {} {choice}", safe(&shadow.name)));
    }
    if !pool.shadows.is_empty() {
        lines.push(style.faint(&format!("          ({NO_FORECAST})")));
    }
}

/// All candidates, or of very many the picked one and the first.
fn shown(pool: &PoolTold) -> impl Iterator<Item = &Candidate> {
    let picked = pool.candidates.iter().position(|one| one.is_picked);
    let last = match picked {
        Some(index) if index >= CANDIDATES_MAX => CANDIDATES_MAX - 1,
        _ => CANDIDATES_MAX,
    };
    let wanted = move |index: usize| index < last || Some(index) == picked;
    pool.candidates.iter().enumerate().filter(move |(index, _)| wanted(*index)).map(|(_, one)| one)
}

fn row(one: &Candidate, is_thinned: bool) -> Vec<String> {
    let in_flight = match one.max_in_flight {
        Some(most) => format!("{} of {most}", one.in_flight),
        None => one.in_flight.to_string(),
    };
    let backup = if one.is_backup && one.excluded.is_none() { "a backup" } else { "" };
    let mut cells = vec![
        if one.is_picked { ">" } else { "" }.to_owned(),
        one.endpoint.clone(),
        one.weight.to_string(),
        in_flight,
        one.score.map_or_else(String::new, number),
    ];
    cells.extend(is_thinned.then(|| format!("{:.0} %", one.ramp * 100.0)));
    cells.push(safe(one.excluded.as_deref().unwrap_or(backup)));
    cells
}
