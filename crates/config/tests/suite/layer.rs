//! What the API has changed, held to the rule of precedence by a slow model of it, and to the files by
//! reading back what was written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use proptest::prelude::*;
use subak_base::Weight;
use subak_config::{Added, Address, Config, Layer, Made, joining, parse, written};

const ENDPOINTS: u8 = 5;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// The file is read, with these endpoints in this order, each with its weight.
    Reload(Vec<(u8, u16)>),
    /// The API adds one.
    Add(u8, u16),
    /// The API removes one.
    Remove(u8),
    /// The API sets a weight, or takes it back.
    Weigh(u8, Option<u16>),
    /// The API takes everything back.
    Clear,
}

fn address(endpoint: u8) -> String {
    format!("10.0.0.{endpoint}:80")
}

fn file(endpoints: &[(u8, u16)]) -> String {
    let list: Vec<String> = endpoints
        .iter()
        .map(|(endpoint, weight)| match weight % 3 {
            0 => format!("{{ address = \"{}\", weight = {weight} }}", address(*endpoint)),
            1 => format!("    \"{} weight={weight}\"", address(*endpoint)),
            _ => {
                format!("\n    # about {endpoint}\n    \"{}  weight={weight}\"", address(*endpoint))
            }
        })
        .collect();
    let list = list.join(", ");
    format!("[listener.web]\nbind = \"*:80\"\npool = \"app\"\n[pool.app]\nendpoints = [{list}]\n")
}

fn read(text: &str) -> Config {
    let outcome = parse(text, Path::new("subak.toml"));
    outcome.config.unwrap_or_else(|| panic!("{text}\n{:?}", outcome.diagnostics))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let files = prop::collection::btree_map(0..ENDPOINTS, 1..9_u16, 0..5);
    let step = prop_oneof![
        2 => files.prop_map(|file| Step::Reload(file.into_iter().collect())),
        3 => (0..ENDPOINTS, 1..9_u16).prop_map(|(endpoint, weight)| Step::Add(endpoint, weight)),
        3 => (0..ENDPOINTS).prop_map(Step::Remove),
        3 => (0..ENDPOINTS, prop::option::of(1..9_u16)).prop_map(|(one, weight)| Step::Weigh(one, weight)),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 0..30)
}

/// What the rule says of one endpoint, told from what has happened to it alone.
fn judged(endpoint: u8, happened: &[Step]) -> Option<u16> {
    let (mut file, mut added, mut removed, mut set) = (None, None, false, None);
    for step in happened {
        let is_there = added.is_some() || (file.is_some() && !removed);
        match step {
            Step::Reload(list) => {
                file = list.iter().find(|(one, _)| *one == endpoint).map(|(_, weight)| *weight);
                removed &= file.is_some();
                if file.is_some() && !removed {
                    added = None;
                }
                if file.is_none() && added.is_none() {
                    set = None;
                }
            }
            Step::Add(one, weight) if *one == endpoint && !is_there => added = Some(*weight),
            Step::Remove(one) if *one == endpoint && is_there => {
                (added, set) = (None, None);
                removed = file.is_some();
            }
            Step::Weigh(one, weight) if *one == endpoint && is_there => set = *weight,
            Step::Clear => {
                (added, removed) = (None, false);
                set = None;
            }
            _ => {}
        }
    }
    let written = added.or(file.filter(|_| !removed))?;
    Some(set.unwrap_or(written))
}

fn made<T>(value: T) -> Made<T> {
    Made { value, by: "test".into(), at: SystemTime::UNIX_EPOCH }
}

/// The same steps, taken by the layer.
struct Run {
    text: String,
    below: Config,
    layer: Layer,
}

impl Run {
    fn new() -> Run {
        let text = file(&[]);
        Run { below: read(&text), text, layer: Layer::default() }
    }

    fn take(&mut self, step: &Step) {
        let now = self.layer.apply(&self.below);
        let pool = &now.pools[0];
        let at = |endpoint: &u8| -> Address {
            joining(&address(*endpoint), &read(&file(&[])).pools[0]).expect("an endpoint").address
        };
        let is_there = |endpoint: &u8| pool.endpoints.iter().any(|one| one.address == at(endpoint));
        let name = pool.name.clone();
        match step {
            Step::Reload(list) => {
                self.text = file(list);
                self.below = read(&self.text);
            }
            Step::Add(endpoint, weight) if !is_there(endpoint) => {
                let text = format!("{} weight={weight}", address(*endpoint));
                let endpoint = joining(&text, pool).expect("it may join");
                let added = made(Added { text: text.into(), endpoint });
                self.layer.change(&name, |layer| layer.add(added));
            }
            Step::Remove(endpoint) if is_there(endpoint) => {
                let address = at(endpoint);
                let is_below =
                    self.below.pools[0].endpoints.iter().any(|one| one.address == address);
                self.layer.change(&name, |layer| layer.remove(&address, is_below, made(())));
            }
            Step::Weigh(endpoint, weight) if is_there(endpoint) => {
                let weight = weight.map(|weight| made(Weight(weight)));
                self.layer.change(&name, |layer| {
                    layer.set(&at(endpoint), |set| set.weight = weight);
                });
            }
            Step::Clear => self.layer = Layer::default(),
            _ => {}
        }
        self.layer.settle(&self.below);
    }

    /// Endpoints with their weights, whoever says them.
    fn in_force(&self) -> BTreeMap<Address, u16> {
        let config = self.layer.apply(&self.below);
        let set = self.layer.pool("app").map(|pool| pool.set.clone()).unwrap_or_default();
        let weight = |one: &subak_config::Endpoint| {
            let set = set.get(&one.address).and_then(|set| set.weight.as_ref());
            set.map_or(one.weight, |made| made.value).0
        };
        config.pools[0].endpoints.iter().map(|one| (one.address.clone(), weight(one))).collect()
    }
}

proptest! {
    #[test]
    fn any_order_of_changes_and_reloads_ends_in_what_the_rule_says(steps in steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
        let judged: BTreeMap<String, u16> = (0..ENDPOINTS)
            .filter_map(|one| Some((address(one), judged(one, &steps)?)))
            .collect();
        let found: BTreeMap<String, u16> =
            run.in_force().into_iter().map(|(at, weight)| (at.to_string(), weight)).collect();
        prop_assert_eq!(found, judged);
    }

    #[test]
    fn what_is_written_reads_back_as_what_is_in_force(steps in steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
        let text: Arc<str> = run.text.as_str().into();
        let written = written(&[text], &run.layer).expect("TOML");
        prop_assert_eq!(&written.left, &Layer::default());
        let read_back = read(&written.texts[0]);
        let in_force = run.in_force();
        let weights: BTreeMap<Address, u16> =
            read_back.pools[0].endpoints.iter().map(|one| (one.address.clone(), one.weight.0)).collect();
        prop_assert_eq!(weights, in_force);
        let order = |config: &Config| -> Vec<Address> {
            config.pools[0].endpoints.iter().map(|one| one.address.clone()).collect()
        };
        prop_assert_eq!(order(&read_back), order(&run.layer.apply(&run.below)));
        // A comment is never lost but with the endpoint it stands behind.
        for line in run.text.lines().filter(|line| line.trim_start().starts_with('#')) {
            prop_assert!(written.texts[0].contains(line.trim()), "{}\n{}", line, written.texts[0]);
        }
        // Saved, nothing is left to be saved.
        let again = subak_config::written(&written.texts, &written.left).expect("TOML");
        prop_assert_eq!(again.texts, written.texts);
    }
}

#[test]
fn an_edit_of_the_file_that_the_api_masks_is_told_with_the_way_out() {
    let file = |weight: u16, state: &str, more: &str| {
        read(&format!(
            "[listener.web]\nbind = \"*:80\"\npool = \"app\"\n[pool.app]\n{more}\
             endpoints = [\"10.0.0.2:80 weight={weight} state={state}\", \"10.0.0.3:80 weight={weight}\"]\n"
        ))
    };
    let made =
        |value: u16| Made { value: Weight(value), by: "uid 0".into(), at: SystemTime::now() };
    let (before, now) = (file(1, "ready", ""), file(3, "drain", "pick_log = 10\n"));
    let [two, three] = &before.pools[0].endpoints[..] else { panic!("two endpoints") };
    let mut layer = Layer::default();
    layer.change(&before.pools[0].name, |pool| {
        pool.set(&two.address, |set| set.weight = Some(made(5)));
        let removed = Made { value: (), by: "uid 0".into(), at: SystemTime::now() };
        pool.remove(&three.address, true, removed);
    });
    let told: Vec<String> = layer.masked(&before, &now).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "weight of 10.0.0.2:80 (pool app) is 3 in the file; 5, set by the API, stays in force until \
             `subak ctl reset app 10.0.0.2:80 --weight`",
            "10.0.0.3:80 of pool app was edited in the file; the API has removed it, and it stays away until \
             `subak ctl add app '10.0.0.3:80 weight=3'`",
        ],
        "the state is not set by the API: the file's is in force"
    );
    // Nothing was edited, or what the file says now is what the API has set.
    assert!(layer.masked(&now, &now).is_empty());
    assert!(layer.masked(&before, &file(5, "ready", "")).iter().all(|one| one.key != "weight"));
}
