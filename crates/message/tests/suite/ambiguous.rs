//! Every message of the ambiguous lists gets its verdict, whole and cut anywhere.

use subak_message::ambiguous::{ANSWERS, Answer, REQUESTS, Verdict};
use subak_message::h1::{Asked, ChunkedDecoder, Progress, parse_request, parse_response};
use subak_message::{BodyLength, HeadLimits, Method, RequestHead, ResponseHead};

/// What a connection made of a request that arrives in pieces: its status, 0 while it waits.
fn request_status(bytes: &[u8], cuts: &[usize]) -> u16 {
    let limits = HeadLimits::default();
    let mut head = RequestHead::default();
    for &cut in cuts {
        let buffer = &bytes[..cut];
        match parse_request(buffer, &limits, &mut head) {
            Err(error) => return error.status(),
            Ok(Progress::Partial) => {}
            Ok(Progress::Complete { consumed, framing }) => {
                return body_status(&bytes[consumed..], framing.body);
            }
        }
    }
    0
}

fn body_status(rest: &[u8], body: BodyLength) -> u16 {
    match body {
        BodyLength::None => {
            assert!(rest.is_empty(), "a second message was smuggled: {rest:?}");
            200
        }
        BodyLength::Known(length) => {
            assert_eq!(rest.len() as u64, length, "a second message was smuggled");
            200
        }
        BodyLength::Chunked => {
            let mut decoder = ChunkedDecoder::new();
            match decoder.decode(&mut rest.to_vec()) {
                Err(_) => 400,
                Ok(decoded) if decoded.finished => {
                    assert_eq!(decoded.consumed, rest.len(), "a second message was smuggled");
                    200
                }
                Ok(_) => 0,
            }
        }
        BodyLength::UntilClose => panic!("no request ends with its connection"),
    }
}

fn answer_verdict(case: &Answer) -> Verdict {
    let limits = HeadLimits::default();
    let asked = Asked { method: case.method, upgrade: false };
    let mut head = ResponseHead::default();
    let mut at = 0;
    loop {
        match parse_response(&case.bytes[at..], &limits, &asked, &mut head) {
            Err(_) | Ok(Progress::Partial) => return Verdict::Refused,
            Ok(Progress::Complete { consumed, framing }) => {
                at += consumed;
                if head.is_interim() {
                    continue;
                }
                let rest = &case.bytes[at..];
                let complete = match framing.body {
                    BodyLength::None => rest.is_empty(),
                    BodyLength::Known(length) => rest.len() as u64 == length,
                    BodyLength::UntilClose => true,
                    BodyLength::Chunked => ChunkedDecoder::new()
                        .decode(&mut rest.to_vec())
                        .is_ok_and(|decoded| decoded.finished),
                };
                return if complete { Verdict::Accepted } else { Verdict::CutOff };
            }
        }
    }
}

#[test]
fn every_request_gets_its_status() {
    let wrong: Vec<_> = REQUESTS
        .iter()
        .map(|case| (case, request_status(case.bytes, &[case.bytes.len()])))
        .filter(|(case, status)| *status != case.status)
        .map(|(case, status)| format!("{}: {status} instead of {}", case.name, case.status))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_request_gets_its_status_byte_by_byte() {
    for case in REQUESTS {
        let cuts: Vec<usize> = (0..=case.bytes.len()).collect();
        assert_eq!(request_status(case.bytes, &cuts), case.status, "{}", case.name);
    }
}

#[test]
fn every_answer_gets_its_verdict() {
    let wrong: Vec<_> = ANSWERS
        .iter()
        .map(|case| (case, answer_verdict(case)))
        .filter(|(case, verdict)| *verdict != case.verdict)
        .map(|(case, verdict)| format!("{}: {verdict:?} instead of {:?}", case.name, case.verdict))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_lists_are_as_long_as_promised_and_name_each_case_once() {
    let refused = REQUESTS.iter().filter(|case| case.status != 200).count();
    assert!(refused >= 80, "{refused} ambiguous requests");
    let refused = ANSWERS.iter().filter(|case| case.verdict != Verdict::Accepted).count();
    assert!(refused >= 40, "{refused} ambiguous answers");
    let mut names: Vec<_> = REQUESTS.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), REQUESTS.len());
    let mut names: Vec<_> = ANSWERS.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ANSWERS.len());
}

#[test]
fn a_refused_upgrade_is_an_upgrade_once_it_was_asked_for() {
    let limits = HeadLimits::default();
    let asked = Asked { method: Method::Get, upgrade: true };
    let mut head = ResponseHead::default();
    let switch = ANSWERS.iter().find(|case| case.name == "switch nobody asked for").expect("case");
    let Ok(Progress::Complete { framing, .. }) =
        parse_response(switch.bytes, &limits, &asked, &mut head)
    else {
        panic!("an upgrade that was asked for is accepted")
    };
    assert!(framing.upgrade && framing.body == BodyLength::None);
    let h2c = ANSWERS.iter().find(|case| case.name == "switch to h2c").expect("case");
    assert!(parse_response(h2c.bytes, &limits, &asked, &mut head).is_err());
}
