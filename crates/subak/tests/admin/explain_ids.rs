//! The header that names a decision: on every answer where it is switched on, never the same twice.

use std::collections::HashSet;

use crate::support::{Endpoint, Setup, Subak};

/// The decisions of answers to these paths.
fn ids(subak: &Subak, paths: &[&str]) -> Vec<Option<String>> {
    let mut client = subak.client();
    let id = |path: &&str| client.get(path).field("x-subak-decision").map(str::to_owned);
    paths.iter().map(id).collect()
}

#[test]
fn every_answer_names_its_decision_where_that_is_switched_on() {
    let endpoint = Endpoint::named("one");
    let setup = Setup::before(&[&endpoint]).listener("decision_header = \"X-Subak-Decision\"").tail(
        "[[listener.web.route]]\npath = \"/made\"\nrespond = { status = 200, body = \"here\" }\n\
         [[listener.web.route]]\npath = \"/gone\"\npool = \"none\"\n[pool.none]\nendpoints = []\n",
    );
    let subak = setup.start();
    let named = ids(&subak, &["/", "/made", "/gone", "/", "/"]);
    let named: HashSet<String> = named.into_iter().map(|id| id.expect("an id")).collect();
    assert_eq!(named.len(), 5, "{named:?}");
    let is_id = |id: &String| id.len() == 16 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    assert!(named.iter().all(is_id), "{named:?}");
}

#[test]
fn no_answer_names_its_decision_where_that_is_not_switched_on() {
    let endpoint = Endpoint::named("one");
    let subak = Setup::before(&[&endpoint]).pool("pick_log = 10").start();
    assert_eq!(ids(&subak, &["/", "/"]), [None, None]);
}
