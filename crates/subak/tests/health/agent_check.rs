//! What an agent says of its endpoint holds: weight, drain, maintenance, down, and back.

use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{Moody, Setup, Subak, fresh_address, wait_until};

/// An agent that says the same line to everybody, until another is set.
struct Agent {
    line: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl Agent {
    /// Beside the endpoint at this address.
    fn beside(endpoint: &str) -> Agent {
        let address = endpoint.replace(":8080", ":9999");
        let listener = TcpListener::bind(address).expect("bind an agent");
        let line = Arc::new(Mutex::new("up ready 100%".to_owned()));
        let asked = Arc::new(AtomicUsize::new(0));
        let (said, count) = (line.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let line = said.lock().expect("a line").clone();
                let _ = stream.expect("a connection").write_all(format!("{line}\n").as_bytes());
            }
        });
        Agent { line, asked }
    }

    fn says(&self, line: &str) {
        line.clone_into(&mut self.line.lock().expect("a line"));
    }
}

/// Two endpoints, the first with an agent that may say what it likes.
fn two() -> (Subak, Agent, [Moody; 2]) {
    let addresses = [fresh_address(), fresh_address()];
    let endpoints = [Moody::at(&addresses[0], "a"), Moody::at(&addresses[1], "b")];
    let agent = Agent::beside(&addresses[0]);
    let subak = Setup::before_addresses(addresses)
        .pool("agent_check = { port = 9999, interval = \"200ms\", timeout = \"200ms\" }")
        .start();
    (subak, agent, endpoints)
}

/// How many of 40 requests go to the first.
fn share(subak: &Subak, endpoints: &[Moody; 2]) -> usize {
    let hits = endpoints[0].hits();
    (0..40).for_each(|_| assert_eq!(subak.get("/").0, 200));
    endpoints[0].hits() - hits
}

#[test]
fn an_agent_takes_its_endpoint_out_and_brings_it_back() {
    let (subak, agent, endpoints) = two();
    assert_eq!(share(&subak, &endpoints), 20);
    for (line, logged) in [
        ("drain", "ready to drain: set to drain by its agent"),
        ("maint", "ready to maintenance: set to maintenance by its agent"),
        ("down # out of disk", "ready to down: its agent says down: out of disk"),
        ("stopped", "ready to down: its agent says stopped"),
    ] {
        agent.says(line);
        subak.wait_for_log(logged);
        wait_until("nobody goes there", || share(&subak, &endpoints) == 0);
        agent.says("up ready");
        wait_until("it has its part again", || share(&subak, &endpoints) == 20);
    }
}

#[test]
fn an_agent_weighs_its_endpoint() {
    let (subak, agent, endpoints) = two();
    for (line, part) in [("300%", 30), ("0%", 0), ("100%", 20)] {
        agent.says(line);
        wait_until(&format!("{line} holds"), || share(&subak, &endpoints) == part);
    }
}

#[test]
fn what_an_agent_says_that_means_nothing_is_logged_once() {
    let (subak, agent, endpoints) = two();
    agent.says("50% sideways");
    subak.wait_for_log("unknown word \"sideways\"");
    // 50 and 100: a third.
    wait_until("the rest of the line holds", || (13..=14).contains(&share(&subak, &endpoints)));
    agent.says("100% sideways");
    wait_until("another line holds", || share(&subak, &endpoints) == 20);
    assert_eq!(subak.log().matches("sideways").count(), 1, "{}", subak.log());
}

#[test]
fn an_endpoint_whose_agent_never_answers_works_and_that_is_said_once() {
    let (subak, agent, endpoints) = two();
    agent.says("drain");
    wait_until("nobody goes there", || share(&subak, &endpoints) == 0);
    // The other endpoint has no agent, and has all the work.
    assert_eq!(share(&subak, &endpoints), 0);
    assert!(!subak.log().contains(&format!("{}: ready to down", endpoints[1].address())));
    // The other's agent is asked as often, and is never there.
    let silent = "its agent does not answer: connection refused";
    subak.wait_for_log(silent);
    let asked = agent.asked.load(Ordering::SeqCst);
    wait_until("it is asked again and again", || agent.asked.load(Ordering::SeqCst) >= asked + 4);
    assert_eq!(subak.log().matches(silent).count(), 1, "{}", subak.log());
}
