//! What a person who reads the file afterwards sees.

use super::*;
use crate::layer::{Added, Made, Wanted};
use std::path::Path;
use std::time::SystemTime;

fn made<T>(value: T) -> Made<T> {
    Made { value, by: "test".into(), at: SystemTime::UNIX_EPOCH }
}

fn address(text: &str) -> Address {
    parse(text).expect("an address")
}

/// The text of a pool `app` after these changes.
fn after(text: &str, change: impl FnOnce(&mut PoolLayer)) -> (String, Layer) {
    let mut layer = Layer::default();
    layer.change(&"app".into(), change);
    let written = written(&[text.into()], &layer).expect("TOML");
    (written.texts[0].to_string(), written.left)
}

fn weight(layer: &mut PoolLayer, endpoint: &str, weight: u16) {
    layer.set(&address(endpoint), |set| set.weight = Some(made(Weight(weight))));
}

fn state(layer: &mut PoolLayer, endpoint: &str, state: Admin, deadline: Option<subak_base::Tick>) {
    layer.set(&address(endpoint), |set| set.state = Some(made(Wanted { state, deadline })));
}

fn add(layer: &mut PoolLayer, text: &str) {
    let pool = "[listener.l]\nbind=\"*:1\"\npool=\"app\"\n[pool.app]\nendpoints=[]";
    let config = crate::parse(pool, Path::new("x")).config.expect("a configuration");
    let endpoint = crate::joining(text, &config.pools[0]).expect("an endpoint");
    layer.add(made(Added { text: text.into(), endpoint }));
}

fn remove(layer: &mut PoolLayer, endpoint: &str) {
    layer.remove(&address(endpoint), true, made(()));
}

const LINES: &str = "\
# All of it.
workers = 2 # two

[pool.app] # the only one
endpoints = [
    # the old machines
    \"10.0.0.2:80\",          # rack 1
    \"10.0.0.3:80 weight=2\", # rack 2
    # the new one
    { address = \"10.0.0.4:80\", weight = 3 }, # rack 3
]
";

#[test]
fn values_change_where_they_stand_and_comments_stay() {
    let (text, left) = after(LINES, |layer| {
        weight(layer, "10.0.0.2:80", 7);
        weight(layer, "10.0.0.3:80", 1);
        state(layer, "10.0.0.4:80", Admin::Drain, None);
        layer.pick_log = Some(made(std::num::NonZeroUsize::new(100)));
    });
    assert_eq!(left, Layer::default());
    let expected = LINES
        .replace("\"10.0.0.2:80\", ", "\"10.0.0.2:80 weight=7\", ")
        .replace("10.0.0.3:80 weight=2", "10.0.0.3:80")
        .replace("weight = 3 }", "weight = 3 , state = \"drain\" }")
        .replace("]\n", "]\npick_log = 100\n")
        .replace("[pool.app]\npick_log = 100\n", "[pool.app]\n");
    assert_eq!(text.replace("3 ,", "3,"), expected.replace("3 ,", "3,"));
}

#[test]
fn endpoints_come_as_the_last_line_and_go_with_their_own_comment() {
    let (text, _) = after(LINES, |layer| add(layer, "10.0.0.9:80 weight=4"));
    let line = "weight = 3 }, # rack 3\n    \"10.0.0.9:80 weight=4\",\n]";
    assert_eq!(text, LINES.replace("weight = 3 }, # rack 3\n]", line));
    let (text, _) = after(LINES, |layer| remove(layer, "10.0.0.2:80"));
    assert_eq!(text, LINES.replace("    \"10.0.0.2:80\",          # rack 1\n", ""));
    let (text, _) = after(LINES, |layer| remove(layer, "10.0.0.3:80"));
    assert_eq!(text, LINES.replace("    \"10.0.0.3:80 weight=2\", # rack 2\n", ""));
    let (text, _) = after(LINES, |layer| remove(layer, "10.0.0.4:80"));
    assert_eq!(
        text,
        LINES.replace("    { address = \"10.0.0.4:80\", weight = 3 }, # rack 3\n", "")
    );
}

#[test]
fn a_list_on_one_line_stays_on_one_line() {
    let one = "[pool.app]\nendpoints = [\"10.0.0.2:80\", \"10.0.0.3:80\"] # both\n";
    let (text, _) = after(one, |layer| {
        remove(layer, "10.0.0.2:80");
        add(layer, "10.0.0.5:80");
    });
    assert_eq!(
        text,
        one.replace("\"10.0.0.2:80\", \"10.0.0.3:80\"", "\"10.0.0.3:80\", \"10.0.0.5:80\"")
    );
    let (text, _) = after("[pool.app]\nendpoints = []\n", |layer| add(layer, "10.0.0.5:80"));
    assert_eq!(text, "[pool.app]\nendpoints = [\"10.0.0.5:80\"]\n");
    let (text, _) = after("[pool.app]\n", |layer| add(layer, "10.0.0.5:80"));
    assert_eq!(text, "[pool.app]\nendpoints = [\"10.0.0.5:80\"]\n");
}

#[test]
fn endpoints_may_be_tables_of_their_own() {
    let tables = "[[pool.app.endpoints]]\naddress = \"10.0.0.2:80\" # first\nweight = 2\n\n\
                  [[pool.app.endpoints]]\naddress = \"10.0.0.3:80\"\n";
    let (text, left) = after(tables, |layer| {
        weight(layer, "10.0.0.2:80", 9);
        remove(layer, "10.0.0.3:80");
        add(layer, "10.0.0.4:80 weight=5 backup=true");
    });
    assert_eq!(left, Layer::default());
    let expected = "[[pool.app.endpoints]]\naddress = \"10.0.0.2:80\" # first\nweight = 9\n\n\
                    [[pool.app.endpoints]]\naddress = \"10.0.0.4:80\"\nweight = 5\nbackup = true\n";
    assert_eq!(text, expected);
}

#[test]
fn what_has_no_place_in_the_file_is_left() {
    let text = "[pool.app]\nendpoints = [\"app.internal:80\", \"10.0.0.3:80\"]\n";
    let (after, left) = after(text, |layer| {
        weight(layer, "10.9.9.9:80", 7);
        state(layer, "10.0.0.3:80", Admin::Drain, Some(subak_base::Tick(5)));
        weight(layer, "10.0.0.3:80", 2);
    });
    assert_eq!(after, text.replace("10.0.0.3:80", "10.0.0.3:80 weight=2"));
    let left = left.pool("app").expect("something is left");
    assert!(left.set[&address("10.9.9.9:80")].weight.is_some());
    let drain = &left.set[&address("10.0.0.3:80")];
    assert!(drain.state.is_some() && drain.weight.is_none());
}

#[test]
fn a_file_that_says_nothing_of_the_pool_stays_as_it_is() {
    let mut layer = Layer::default();
    layer.change(&"app".into(), |pool| weight(pool, "10.0.0.2:80", 7));
    let texts: [Arc<str>; 2] = ["a   = 1 # odd\r\n".into(), LINES.into()];
    let done = written(&texts, &layer).expect("TOML");
    assert_eq!(done.texts[0], texts[0]);
    assert!(done.texts[1].contains("10.0.0.2:80 weight=7"));
    assert!(written(&["a = ".into()], &layer).is_err());
}
