//! The whole text of picks, from their JSON.

use serde_json::{Value, json};
use subak_explain::text::{self, Style};
use subak_explain::{NamedPick, Picks};

fn pick(more: &Value) -> Value {
    let mut pick = json!({
        "pool": "app", "number": 7, "decision": "00c0ffee00c0ffee", "generation": 2, "version": 5,
        "age_s": 3.25, "client": "192.0.2.7", "key": null, "by": "algorithm",
        "endpoint": "10.0.0.3:80", "ticket": null, "random": "0000000000000001", "tried": [],
        "eligible": 3, "unit": "in flight by weight, fewest first",
        "compared": [
            { "endpoint": "10.0.0.2:80", "weight": 1, "score": 4.0 },
            { "endpoint": "10.0.0.3:80", "weight": 2, "score": 1.5 },
        ],
        "compared_count": 2, "outcome": "answered", "status": 200, "failure": null,
        "took_ms": 1.25, "replays": true,
    });
    for (key, value) in more.as_object().expect("an object") {
        pick[key] = value.clone();
    }
    pick
}

fn named(more: &Value) -> NamedPick {
    serde_json::from_value(pick(more)).expect("a pick")
}

#[test]
fn one_pick_tells_all_that_it_looked_at() {
    let expected = "\
decision  00c0ffee00c0ffee, 3.2 s ago
client    192.0.2.7
pool      app, generation 2, balancer 5, 3 eligible

     endpoint     weight  score
     10.0.0.2:80       1      4
  >  10.0.0.3:80       2    1.5

score     in flight by weight, fewest first
replayed  the same
picked    10.0.0.3:80, by algorithm
outcome   200 after 1.25 ms
";
    assert_eq!(text::one_pick(&named(&json!({})), Style::Plain), expected);
    let failed = json!({
        "key": "a\"b", "ticket": 9, "tried": ["10.0.0.4:80"], "compared": [], "compared_count": 0,
        "unit": null, "outcome": "unreachable", "status": null, "replays": null,
        "by": "last_resort", "failure": "the endpoint cannot be reached: \u{1b}[2J",
    });
    let expected = "\
decision  00c0ffee00c0ffee, 3.2 s ago
client    192.0.2.7
pool      app, generation 2, balancer 5, 3 eligible
key       \"a\\\"b\"
ticket    9
tried     10.0.0.4:80
picked    10.0.0.3:80, by last resort
outcome   the endpoint cannot be reached: \u{fffd}[2J after 1.25 ms
";
    assert_eq!(text::one_pick(&named(&failed), Style::Plain), expected);
}

#[test]
fn picks_stand_below_each_other_and_failures_in_red() {
    let none = json!({
        "endpoint": null, "outcome": null, "status": null, "took_ms": null, "client": null,
        "decision": null, "age_s": 7200.0,
    });
    let refused = json!({ "status": 502, "age_s": 90.0, "by": "stickiness" });
    let picks = [json!({}), refused, none].map(|more| pick(&more));
    let told = json!({ "picks": picks, "pools_with_log": ["app"], "pools_without_log": [] });
    let told: Picks = serde_json::from_value(told).expect("picks");
    let expected = "\
decision            ago  client     pool  endpoint     by          outcome             took
00c0ffee00c0ffee  3.2 s  192.0.2.7  app   10.0.0.3:80  algorithm   200              1.25 ms
00c0ffee00c0ffee  2 min  192.0.2.7  app   10.0.0.3:80  stickiness  502              1.25 ms
                    2 h             app   none         algorithm   nobody was left
";
    assert_eq!(text::picks(&told, Style::Plain), expected);
    let coloured = text::picks(&told, Style::Color);
    let red = |line: &&str| line.starts_with("\u{1b}[31m") && line.ends_with("\u{1b}[0m");
    assert_eq!(coloured.lines().filter(red).count(), 2);
    let bare = ["\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"];
    let stripped = bare.iter().fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(stripped, expected);
}
