//! Reads the answer to an HTTP probe, wherever its bytes are cut, and judges it.
//!
//! Nothing is read that the verdict does not need: the head alone where no body is expected, at most
//! [`BODY_MAX`] bytes of a body. Interim answers (1xx) are passed over. No input or output here.
//!
//! Cost: each byte of a head is searched once for its end and parsed once; a body is judged once.

use subak_health::{BODY_MAX, ProbeFailure};
use subak_message::h1::{ChunkedDecoder, Progress, parse_response};
use subak_message::{BodyLength, HeadLimits, PathRules, ResponseHead};

use crate::request::HttpCheck;

/// Bytes of one head that are read; a longer one is malformed.
const HEAD_MAX: usize = 16 * 1024;
/// Field lines of one head.
const FIELDS_MAX: usize = 100;
/// Interim answers to one request.
const INTERIM_MAX: usize = 16;
/// What is asked of the socket at a time.
const READ: usize = 2 * 1024;

const LIMITS: HeadLimits =
    HeadLimits { max_bytes: HEAD_MAX, max_fields: FIELDS_MAX, path: PathRules::DEFAULT };

/// What came of a probe.
pub(crate) type Verdict = Result<(), ProbeFailure>;

/// An answer that is being read.
#[derive(Debug)]
pub(crate) struct Answer<'c> {
    check: &'c HttpCheck,
    received: Vec<u8>,
    part: Part,
    interim: usize,
}

#[derive(Debug)]
enum Part {
    /// So many bytes of a head were searched for its end.
    Head { searched: usize },
    /// A body of a good status; it begins what was received.
    Body { status: u16, length: Length },
}

#[derive(Debug)]
enum Length {
    /// So many bytes are wanted.
    Known(usize),
    /// To the end of the connection.
    UntilClose,
    /// So many bytes are payload; what lies behind them is not decoded yet.
    Chunked { decoder: Box<ChunkedDecoder>, payload: usize },
}

impl<'c> Answer<'c> {
    pub(crate) fn new(check: &'c HttpCheck) -> Answer<'c> {
        let part = Part::Head { searched: 0 };
        Answer { check, received: Vec::new(), part, interim: 0 }
    }

    /// Where more of the answer is to be appended, with room for it.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.received.reserve(READ);
        &mut self.received
    }

    /// Looks at what was appended. None: more is needed.
    pub(crate) fn received(&mut self) -> Option<Verdict> {
        loop {
            match &mut self.part {
                Part::Head { searched } => {
                    let complete = head_ends(&self.received, searched);
                    if !complete && self.received.len() < HEAD_MAX {
                        return None;
                    }
                    if let Some(verdict) = self.head() {
                        return Some(verdict);
                    }
                }
                Part::Body { .. } => return self.body(),
            }
        }
    }

    /// The connection has ended in order. What was appended before has been looked at.
    pub(crate) fn closed(&self) -> Verdict {
        match &self.part {
            Part::Body { status, length: Length::UntilClose } => {
                self.check.expect().judge(*status, &self.received)
            }
            _ => Err(ProbeFailure::Closed),
        }
    }

    /// A head is there, or too much of one. None: go on with what is behind it.
    fn head(&mut self) -> Option<Verdict> {
        let mut head = ResponseHead::new();
        let parsed = parse_response(&self.received, &LIMITS, &self.check.asked(), &mut head);
        let Ok(Progress::Complete { consumed, framing }) = parsed else {
            return Some(Err(ProbeFailure::Malformed));
        };
        self.received.drain(..consumed);
        if head.is_interim() {
            self.interim += 1;
            self.part = Part::Head { searched: 0 };
            return (self.interim > INTERIM_MAX).then_some(Err(ProbeFailure::Malformed));
        }
        let expect = self.check.expect();
        let has_good_status = expect.status.contains(head.status);
        let length = match framing.body {
            _ if !has_good_status || !expect.needs_body() => Length::Known(0),
            BodyLength::None => Length::Known(0),
            BodyLength::Known(length) => Length::Known(length.min(BODY_MAX as u64) as usize),
            BodyLength::UntilClose => Length::UntilClose,
            BodyLength::Chunked => Length::Chunked { decoder: Box::default(), payload: 0 },
        };
        self.part = Part::Body { status: head.status, length };
        None
    }

    fn body(&mut self) -> Option<Verdict> {
        let Part::Body { status, length } = &mut self.part else { return None };
        let end = match length {
            Length::Known(wanted) => (self.received.len() >= *wanted).then_some(*wanted),
            Length::UntilClose => (self.received.len() >= BODY_MAX).then_some(BODY_MAX),
            Length::Chunked { decoder, payload } => {
                let Ok(decoded) = decoder.decode(&mut self.received[*payload..]) else {
                    return Some(Err(ProbeFailure::Malformed));
                };
                *payload += decoded.data;
                self.received.truncate(*payload);
                (decoded.finished || *payload >= BODY_MAX).then_some(*payload)
            }
        };
        end.map(|end| self.check.expect().judge(*status, &self.received[..end]))
    }
}

/// Whether an empty line has been received, by either line end: the parser says what is wrong with
/// the one that is not allowed.
fn head_ends(received: &[u8], searched: &mut usize) -> bool {
    let from = searched.saturating_sub(2);
    *searched = received.len();
    let ends =
        received[from..].windows(3).any(|three| three == b"\n\r\n" || three[..2] == *b"\n\n");
    ends || received.ends_with(b"\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_base::Rng;
    use subak_health::{BodyMatch, Expect, StatusSet};
    use subak_message::Method;

    fn get(body: Option<BodyMatch>) -> HttpCheck {
        let status: StatusSet = "200-399".parse().unwrap();
        HttpCheck::new(Method::Get, "/", None, Expect { status, body }).unwrap()
    }

    fn contains(text: &str) -> HttpCheck {
        get(BodyMatch::contains(text).ok())
    }

    /// Reads in pieces of these sizes, the last one again and again, then the end of the connection.
    fn read(check: &HttpCheck, answer: &[u8], mut sizes: impl FnMut() -> usize) -> Verdict {
        let mut reading = Answer::new(check);
        let mut rest = answer;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(sizes().clamp(1, rest.len()));
            reading.buffer().extend_from_slice(piece);
            if let Some(verdict) = reading.received() {
                return verdict;
            }
            rest = behind;
        }
        reading.closed()
    }

    fn verdict(check: &HttpCheck, answer: &str) -> Verdict {
        read(check, answer.as_bytes(), || usize::MAX)
    }

    /// Answers, what is asked for in their bodies, and whether they are good.
    fn examples() -> Vec<(HttpCheck, Vec<u8>, Result<(), &'static str>)> {
        let no = "the body does not contain \"ok\"";
        let closed = "closed before the answer was complete";
        let malformed = "the answer is not HTTP";
        let long = |text: &str| {
            let body = format!("{}{text}", ".".repeat(BODY_MAX - 1));
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        };
        let chunked =
            |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let sized = |size: usize, body: &str| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{body}")
        };
        let plain = |text: &str, end| (get(None), text.as_bytes().to_vec(), end);
        let body = |text: String, end| (contains("ok"), text.into_bytes(), end);
        vec![
            plain("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            plain("HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n", Ok(())),
            plain("HTTP/1.1 204 No Content\r\n\r\n", Ok(())),
            plain("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Ok(())),
            plain(
                "HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\n",
                Err("status 500 is not in 200-399"),
            ),
            plain("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(())),
            plain(
                "HTTP/1.1 103 Hm\r\n\r\nHTTP/1.1 503 No\r\n\r\n",
                Err("status 503 is not in 200-399"),
            ),
            plain("HTTP/1.1 103 Hm\r\n\r\n", Err(closed)),
            plain(
                "HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                Err(malformed),
            ),
            plain("HTTP/1.1 200 OK\r\n", Err(closed)),
            plain("H", Err(closed)),
            plain("HTTP/1.1 200 OK\n\n", Err(malformed)),
            plain("\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Err(malformed)),
            plain("220 mail.example ESMTP\r\n\r\n", Err(malformed)),
            plain(
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Err(malformed),
            ),
            body(sized(10, "all is ok."), Ok(())),
            body(sized(3, "no!ok"), Err(no)),
            body(sized(12, "all is ok."), Err(closed)),
            body(sized(0, ""), Err(no)),
            body("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), Err(no)),
            body("HTTP/1.0 200 OK\r\n\r\nit is ok".to_owned(), Ok(())),
            body("HTTP/1.0 200 OK\r\n\r\nit is not".to_owned(), Err(no)),
            body("HTTP/1.1 503 Oh\r\n\r\nok".to_owned(), Err("status 503 is not in 200-399")),
            body(chunked("3\r\nall\r\n5;x=y\r\n is o\r\n2\r\nk.\r\n0\r\n\r\n"), Ok(())),
            body(chunked("1\r\no\r\n1\r\n-\r\n1\r\nk\r\n0\r\n\r\n"), Err(no)),
            body(chunked("3\r\nall\r\n"), Err(closed)),
            body(chunked("x\r\n"), Err(malformed)),
            body(long("k"), Err(no)),
            body(long("ok"), Err(no)),
            body(chunked(&format!("8000\r\n{}ok", ".".repeat(0x7ffe))), Err(no)),
        ]
    }

    #[test]
    fn answers_are_judged_wherever_they_are_cut() {
        for (check, answer, expected) in examples() {
            let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]).into_owned();
            let expected = expected.map_err(str::to_owned);
            let judged = |sizes: &mut dyn FnMut() -> usize| {
                read(&check, &answer, sizes).map_err(|failure| failure.to_string())
            };
            assert_eq!(judged(&mut || usize::MAX), expected, "{shown:?} at once");
            assert_eq!(judged(&mut || 1), expected, "{shown:?} byte by byte");
            for seed in 0..50 {
                let mut rng = Rng::new(seed);
                let cut = judged(&mut || rng.below(20) as usize);
                assert_eq!(cut, expected, "{shown:?}, seed {seed}");
            }
        }
    }

    #[test]
    fn nothing_is_read_that_the_verdict_does_not_need() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
        let check = get(None);
        let mut reading = Answer::new(&check);
        reading.buffer().extend_from_slice(head.as_bytes());
        assert_eq!(reading.received(), Some(Ok(())));

        let check = contains("ok");
        let mut reading = Answer::new(&check);
        reading.buffer().extend_from_slice(head.as_bytes());
        let mut sent = 0;
        while reading.received().is_none() {
            reading.buffer().extend_from_slice(&[b'.'; 1024]);
            sent += 1024;
        }
        assert_eq!(sent, BODY_MAX);
    }

    #[test]
    fn a_head_without_end_and_a_row_of_interim_answers_are_bounded() {
        let check = get(None);
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_MAX));
        assert_eq!(verdict(&check, &endless), Err(ProbeFailure::Malformed));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX);
        assert_eq!(verdict(&check, &(interim.clone() + "HTTP/1.1 200 OK\r\n\r\n")), Ok(()));
        let one_more = interim + "HTTP/1.1 100 Continue\r\n\r\n";
        assert_eq!(verdict(&check, &one_more), Err(ProbeFailure::Malformed));
    }

    #[test]
    fn an_answer_to_head_has_no_body_whatever_it_announces() {
        let expect = Expect::default();
        let check = HttpCheck::new(Method::Head, "/", None, expect).unwrap();
        assert_eq!(verdict(&check, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"), Ok(()));
    }
}
