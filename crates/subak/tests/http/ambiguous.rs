//! Messages that two programs could read in two ways, over real sockets: what is refused never
//! reaches the other side, and neither does anything behind it.

use std::sync::{Arc, Mutex};

use crate::support::{Endpoint, Setup, ok};
use subak_message::ambiguous::{ANSWERS, REQUESTS, Request, Verdict};

/// Looks like a request of its own wherever a reader may lose its place.
const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: smuggled\r\n\r\n";

/// Chunks are read after the head has gone on, so the endpoint has seen a part of the message.
fn is_about_the_body(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let (head, _) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    head.contains("\r\nTransfer-Encoding: chunked\r\n")
        || head.ends_with("\r\nTransfer-Encoding: chunked")
}

#[test]
fn an_ambiguous_request_is_refused_and_nothing_of_it_reaches_the_endpoint() {
    let endpoint = Endpoint::named("reached");
    let subak = Setup::before(&[&endpoint]).start();
    let mut wrong = Vec::new();
    // Those about the head first: until then nobody connects to the endpoint at all.
    let refused = REQUESTS.iter().filter(|case| case.status != 200);
    let (body, head): (Vec<&Request>, Vec<&Request>) =
        refused.partition(|case| is_about_the_body(case.bytes));
    for case in head.into_iter().chain(body) {
        let mut client = subak.client();
        // The endpoint or Subak may be faster than the sender.
        let _ = client.try_send([case.bytes, SMUGGLED].concat());
        let answer = match client.try_answer("GET") {
            Ok(answer) => answer,
            Err(error) => {
                wrong.push(format!("{}: no answer: {error}", case.name));
                continue;
            }
        };
        if answer.status != case.status {
            wrong.push(format!("{}: {} instead of {}", case.name, answer.status, case.status));
        }
        if answer.field("connection") != Some("close") {
            wrong.push(format!("{}: the connection goes on", case.name));
        }
        let (rest, _) = client.read_to_end();
        if !rest.is_empty() {
            wrong.push(format!("{}: more came: {:?}", case.name, String::from_utf8_lossy(&rest)));
        }
        if endpoint.accepted() > 0 && !is_about_the_body(case.bytes) {
            wrong.push(format!("{}, or one before it: the endpoint was asked", case.name));
        }
    }
    crate::support::wait_until("the endpoint has seen the ends", || endpoint.open() == 0);
    for bytes in endpoint.received() {
        let text = String::from_utf8_lossy(&bytes);
        if text.contains("smuggled") {
            wrong.push(format!("smuggled: {text:?}"));
        }
    }
    for request in endpoint.requests() {
        wrong.push(format!("taken for complete: {request:?}"));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_no_http_is_refused_before_its_first_line_ends() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    for bytes in [&b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"[..], b"{}", b"\0"] {
        let mut client = subak.client();
        client.send(bytes);
        let answer = client.try_answer("GET").expect("an answer");
        // Not when the head's time is over, which is 408.
        assert_eq!(answer.status, 400, "{bytes:?}");
    }
    assert_eq!(endpoint.accepted(), 0);
}

#[test]
fn what_only_looks_ambiguous_is_forwarded() {
    let endpoint = Endpoint::named("x");
    let subak = Setup::before(&[&endpoint]).start();
    let mut wrong = Vec::new();
    let good: Vec<_> = REQUESTS.iter().filter(|case| case.status == 200).collect();
    for case in &good {
        let mut client = subak.client();
        client.send(case.bytes);
        let answer = client.try_answer("GET");
        if !answer.as_ref().is_ok_and(|answer| answer.status == 200) {
            wrong.push(format!("{}: {answer:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(endpoint.requests().len(), good.len());
}

#[test]
fn an_ambiguous_answer_is_refused_or_cut_off_and_its_connection_is_not_used_again() {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let current = bytes.clone();
    let endpoint = Endpoint::scripted(move |served| {
        // The connection stays open, so that nothing but the bytes decides; but where the end itself
        // is the fault, it ends.
        if served.request().is_some() {
            let answer: Vec<u8> = current.lock().expect("lock").clone();
            served.send(answer);
        }
    });
    let subak = Setup::before(&[&endpoint])
        .pool("retry = { on = [], attempts = 1 }\nback_off = \"1ms\"")
        .start();
    let mut wrong = Vec::new();
    for (number, case) in ANSWERS.iter().enumerate() {
        *bytes.lock().expect("lock") = case.bytes.to_vec();
        let method = match case.method {
            subak_message::Method::Head => "HEAD",
            _ => "GET",
        };
        let mut client = subak.client();
        client.send(format!("{method} /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = client.try_answer(method);
        let seen = match &answer {
            Ok(answer) if answer.status == 502 => Verdict::Refused,
            Ok(_) => Verdict::Accepted,
            Err(_) => Verdict::CutOff,
        };
        if seen != case.verdict {
            wrong
                .push(format!("{}: {seen:?} instead of {:?}: {answer:?}", case.name, case.verdict));
        }
        if case.verdict == Verdict::CutOff {
            client.read_to_end();
        } else if case.verdict == Verdict::Refused {
            // The client did nothing wrong: its connection goes on.
            *bytes.lock().expect("lock") = ok("after");
            let after = client.get("/after");
            if after.text() != "after" {
                wrong.push(format!("{}: afterwards {after:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_connection_on_which_an_ambiguous_answer_came_is_not_used_again() {
    let count = ANSWERS.iter().filter(|case| case.verdict == Verdict::Refused).count();
    let refused = || ANSWERS.iter().filter(|case| case.verdict == Verdict::Refused);
    // The endpoint keeps every connection open and answers as often as it is asked.
    let endpoint = Endpoint::scripted(move |served| {
        let case = refused().filter(|case| case.bytes.ends_with(b"\n")).nth(served.number);
        let Some(case) = case else { return };
        while served.request().is_some() {
            served.send(case.bytes);
            if case.name.contains("cut off") || case.name.contains("no other") {
                return;
            }
        }
    });
    let asked = refused().filter(|case| case.bytes.ends_with(b"\n")).count();
    assert!(asked > 20 && asked <= count);
    let subak = Setup::before(&[&endpoint])
        .pool("retry = { on = [], attempts = 1 }\nback_off = \"1ms\"")
        .start();
    for number in 0..asked {
        let case =
            refused().filter(|case| case.bytes.ends_with(b"\n")).nth(number).expect("a case");
        let mut client = subak.client();
        let method = if case.method == subak_message::Method::Head { "HEAD" } else { "GET" };
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.answer_to(method).status, 502, "{}", case.name);
        assert_eq!(endpoint.accepted(), number + 1, "{}: the connection was used again", case.name);
    }
}
