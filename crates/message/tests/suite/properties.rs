//! Properties over arbitrary bytes and cuts: nothing panics, where input is cut changes nothing, and
//! what is written is read back as the same message.

use proptest::prelude::*;
use subak_message::ambiguous::{ANSWERS, REQUESTS};
use subak_message::h1::{
    Asked, ChunkedDecoder, ConnectionOut, Progress, RequestOut, ResponseOut, parse_request,
    parse_response, write_request_head, write_response_head,
};
use subak_message::{BodyLength, Fields, HeadLimits, Known, Method, RequestHead, ResponseHead};

/// Bytes near the grammar: messages of the lists with a few bytes changed, inserted or removed.
fn near_misses(seeds: Vec<&'static [u8]>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        prop::sample::select(&b"\r\n :;,/%.0159afAFxX\t\0\"\\=-+\x7f\xff"[..]),
        any::<u8>(),
    ];
    let edit = (any::<prop::sample::Index>(), 0..3u8, byte);
    (prop::sample::select(seeds), prop::collection::vec(edit, 0..4)).prop_map(|(seed, edits)| {
        let mut bytes = seed.to_vec();
        for (at, kind, byte) in edits {
            let at = at.index(bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    })
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    near_misses(REQUESTS.iter().map(|case| case.bytes).collect())
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    near_misses(ANSWERS.iter().map(|case| case.bytes).collect())
}

/// The plain reading of a chunked body, over the whole text at once: payload and rest.
fn chunked_oracle(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut payload = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let (digits, extension) = line.split_at(line.find(';').unwrap_or(line.len()));
        let plain =
            (1..=16).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit());
        if !plain || !extension.bytes().all(|b| b";=".contains(&b) || b.is_ascii_alphanumeric()) {
            return None;
        }
        for part in extension.split(';').skip(1) {
            let (name, value) = part.split_once('=').unwrap_or((part, "x"));
            if name.is_empty() || value.is_empty() || value.contains('=') {
                return None;
            }
        }
        let size = usize::from_str_radix(digits, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some((payload, rest.strip_prefix(b"\r\n")?));
        }
        payload.extend_from_slice(rest.get(..size)?);
        rest = rest[size..].strip_prefix(b"\r\n")?;
    }
}

/// Decodes in place, piece by piece; `None` for an error, else payload, bytes used, and the end.
fn decode_in_pieces(text: &[u8], cuts: &[usize]) -> Option<(Vec<u8>, usize, bool, Fields)> {
    let mut decoder = ChunkedDecoder::new();
    let (mut payload, mut used) = (Vec::new(), 0);
    for pair in cuts.windows(2) {
        let mut piece = text[pair[0]..pair[1]].to_vec();
        let decoded = decoder.decode(&mut piece).ok()?;
        assert!(decoded.consumed <= piece.len() && decoded.data <= decoded.consumed);
        assert_eq!(decoded.finished, decoder.is_finished());
        payload.extend_from_slice(&piece[..decoded.data]);
        used += decoded.consumed;
        if decoded.finished {
            break;
        }
        assert_eq!(decoded.consumed, piece.len(), "an unfinished body takes all it is given");
    }
    Some((payload, used, decoder.is_finished(), decoder.trailers().clone()))
}

fn sorted_cuts(cuts: &[prop::sample::Index], len: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(len + 1)).collect();
    cuts.extend([0, len]);
    cuts.sort_unstable();
    cuts
}

proptest! {
    // A failing case becomes a named test, not a file of seeds.
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_do_not_depend_on_where_they_are_cut(bytes in requests()) {
        let limits = HeadLimits::default();
        let mut whole = RequestHead::default();
        let result = parse_request(&bytes, &limits, &mut whole);
        let complete = match result {
            Ok(Progress::Complete { consumed, .. }) => {
                prop_assert!(consumed <= bytes.len());
                consumed
            }
            _ => bytes.len() + 1,
        };
        let mut head = RequestHead::default();
        for cut in 0..=bytes.len() {
            match parse_request(&bytes[..cut], &limits, &mut head) {
                Ok(Progress::Partial) => prop_assert!(cut < complete),
                Ok(progress) => {
                    prop_assert!(cut >= complete);
                    prop_assert_eq!(Ok(progress), result);
                    prop_assert_eq!(&head, &whole);
                }
                Err(early) => {
                    let Err(error) = result else {
                        return Err(TestCaseError::fail(format!("{early} only at {cut}")));
                    };
                    prop_assert_eq!(early.status(), error.status());
                    prop_assert!(early.offset <= cut);
                }
            }
        }
    }

    #[test]
    fn answers_do_not_depend_on_where_they_are_cut(bytes in answers(), head_asked: bool) {
        let limits = HeadLimits::default();
        let method = if head_asked { Method::Head } else { Method::Get };
        let asked = Asked { method, upgrade: true };
        let mut whole = ResponseHead::default();
        let result = parse_response(&bytes, &limits, &asked, &mut whole);
        let complete = match result {
            Ok(Progress::Complete { consumed, .. }) => consumed,
            _ => bytes.len() + 1,
        };
        let mut head = ResponseHead::default();
        for cut in 0..=bytes.len() {
            match parse_response(&bytes[..cut], &limits, &asked, &mut head) {
                Ok(Progress::Partial) => prop_assert!(cut < complete),
                Ok(progress) => {
                    prop_assert!(cut >= complete && complete <= bytes.len());
                    prop_assert_eq!(Ok(progress), result);
                    prop_assert_eq!(&head, &whole);
                }
                Err(early) => prop_assert!(result.is_err(), "{} only at {}", early, cut),
            }
        }
    }

    #[test]
    fn a_forwarded_request_is_read_as_the_same_message(bytes in requests()) {
        let limits = HeadLimits::default();
        let mut head = RequestHead::default();
        let Ok(Progress::Complete { framing, .. }) = parse_request(&bytes, &limits, &mut head) else {
            return Ok(());
        };
        let connection = if framing.upgrade { ConnectionOut::Upgrade } else { ConnectionOut::Implied };
        let write = |head: &RequestHead| {
            let mut out = Vec::new();
            let to = RequestOut {
                target: head.forward_target(),
                default_host: b"endpoint",
                body: framing.body,
                connection,
                expect_continue: true,
            };
            write_request_head(&mut out, head, &to);
            out
        };
        let written = write(&head);
        let mut again = RequestHead::default();
        let result = parse_request(&written, &limits, &mut again);
        let Ok(Progress::Complete { consumed, framing: framing_again }) = result else {
            return Err(TestCaseError::fail(format!("{result:?}: {}", written.escape_ascii())));
        };
        prop_assert_eq!(consumed, written.len());
        prop_assert_eq!(framing_again.body, framing.body);
        prop_assert_eq!(framing_again.upgrade, framing.upgrade);
        prop_assert!(framing_again.keep_alive);
        prop_assert_eq!(again.method, head.method);
        prop_assert_eq!(again.normal_path(), head.normal_path());
        prop_assert_eq!(again.query(), head.query());
        if head.authority().is_some() {
            prop_assert_eq!(again.authority(), head.authority());
        }
        if !head.fields.has(Known::Connection) {
            prop_assert_eq!(lasting(&again.fields), lasting(&head.fields));
        }
        prop_assert!(!again.fields.has(Known::Http2Settings) && !again.fields.has(Known::Lookalike));
        // Writing is a projection: what was written once is written the same again.
        prop_assert_eq!(write(&again), written);
    }

    #[test]
    fn a_forwarded_answer_is_read_as_the_same_message(bytes in answers()) {
        let limits = HeadLimits::default();
        let asked = Asked { method: Method::Get, upgrade: true };
        let mut head = ResponseHead::default();
        let Ok(Progress::Complete { framing, .. }) =
            parse_response(&bytes, &limits, &asked, &mut head)
        else {
            return Ok(());
        };
        let connection = if framing.upgrade { ConnectionOut::Upgrade } else { ConnectionOut::Implied };
        let mut written = Vec::new();
        let to = ResponseOut { body: framing.body, connection };
        write_response_head(&mut written, &head, &to);
        let mut again = ResponseHead::default();
        let result = parse_response(&written, &limits, &asked, &mut again);
        let Ok(Progress::Complete { consumed, framing: framing_again }) = result else {
            return Err(TestCaseError::fail(format!("{result:?}: {}", written.escape_ascii())));
        };
        prop_assert_eq!(consumed, written.len());
        prop_assert_eq!(framing_again.body, framing.body);
        prop_assert_eq!(framing_again.upgrade, framing.upgrade);
        prop_assert_eq!(again.status, head.status);
        prop_assert_eq!(again.reason(), head.reason());
        if !head.fields.has(Known::Connection) {
            prop_assert_eq!(lasting(&again.fields), lasting(&head.fields));
        }
    }

    #[test]
    fn chunked_bodies_do_not_depend_on_where_they_are_cut(
        bytes in near_misses(vec![
            b"5\r\nabcde\r\n0\r\n\r\n",
            b"A;x=y\r\n0123456789\r\n00\r\n\r\nGET /",
            b"1\r\na\r\n2;q;r=s\r\nbc\r\n3\r\ndef\r\n0;z=0\r\n\r\n",
            b"0\r\nX: y\r\nY: z\r\n\r\nrest",
            b"5;a=\"b\\\"c\"\r\nabcde\r\n0\r\nHost: x\r\nX: y\r\n\r\n",
            b"ff\r\n",
        ]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = decode_in_pieces(&bytes, &[0, bytes.len()]);
        let every: Vec<usize> = (0..=bytes.len()).collect();
        prop_assert_eq!(&decode_in_pieces(&bytes, &every), &whole);
        prop_assert_eq!(&decode_in_pieces(&bytes, &sorted_cuts(&cuts, bytes.len())), &whole);
        match (chunked_oracle(&bytes), whole) {
            (Some((payload, rest)), Some(whole)) => {
                prop_assert!(whole.2, "the oracle saw the end");
                prop_assert_eq!(payload, whole.0);
                prop_assert_eq!(rest.len(), bytes.len() - whole.1);
            }
            (Some(_), None) => prop_assert!(false, "refused what the oracle reads"),
            // The oracle knows neither trailers nor quoted extensions.
            (None, Some(whole)) => prop_assert!(
                !whole.2 || bytes.contains(&b':') || bytes.contains(&b'"') || has_marks(&bytes)
            ),
            (None, None) => {}
        }
    }

    #[test]
    fn a_body_in_any_chunks_is_read_back(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut text = Vec::new();
        for chunk in &chunks {
            subak_message::h1::write_chunk_prefix(&mut text, chunk.len());
            text.extend_from_slice(chunk);
            subak_message::h1::write_chunk_end(&mut text);
        }
        let mut trailers = Fields::new();
        trailers.push(b"X-Sum", b"1").expect("value");
        subak_message::h1::write_last_chunk(&mut text, &trailers);
        let cuts = sorted_cuts(&cuts, text.len());
        let decoded = decode_in_pieces(&text, &cuts).expect("what was written is read");
        prop_assert_eq!(decoded, (chunks.concat(), text.len(), true, trailers));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), max_bytes in 0..400usize, max_fields in 0..8usize) {
        let limits = HeadLimits { max_bytes, max_fields, ..HeadLimits::default() };
        let _ = parse_request(&bytes, &limits, &mut RequestHead::default());
        let _ = parse_response(&bytes, &limits, &Asked::default(), &mut ResponseHead::default());
        let _ = ChunkedDecoder::new().decode(&mut bytes.clone());
    }
}

/// The fields that go on whatever the connection does, in order. Those that may be named by
/// `Connection` are only there without one.
fn lasting(fields: &Fields) -> Vec<(Vec<u8>, Vec<u8>)> {
    let moved = [Known::Host, Known::ContentLength, Known::Trailer, Known::Lookalike];
    fields
        .iter()
        .filter(|field| !field.known.is_hop_by_hop() && !moved.contains(&field.known))
        .map(|field| (field.name.to_vec(), field.value.to_vec()))
        .collect()
}

/// Bytes that a token may have and the oracle's extensions may not.
fn has_marks(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| b"!#$%&'*+-.^_`|~".contains(byte))
}

#[test]
fn a_head_is_refused_once_it_can_not_fit() {
    let limits = HeadLimits { max_bytes: 64, max_fields: 3, ..HeadLimits::default() };
    let mut head = RequestHead::default();
    let fits = b"GET / HTTP/1.1\r\nHost: a\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n\r\n";
    assert_eq!(fits.len(), 64);
    assert!(matches!(parse_request(fits, &limits, &mut head), Ok(Progress::Complete { .. })));
    let status = |bytes: &[u8]| {
        parse_request(bytes, &limits, &mut RequestHead::default()).map_err(|error| error.status())
    };
    let line = [&b"GET /"[..], &[b'a'; 80]].concat();
    assert_eq!(status(&line[..63]), Ok(Progress::Partial));
    assert_eq!(status(&line[..64]), Err(414));
    assert_eq!(status(&line), Err(414));
    let long = [&b"GET / HTTP/1.1\r\nHost: a\r\nX: "[..], &[b'a'; 80]].concat();
    assert_eq!(status(&long[..63]), Ok(Progress::Partial));
    assert_eq!(status(&long[..64]), Err(431));
    assert_eq!(status(&long), Err(431));
    assert_eq!(status(b"GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\n\r\n"), Err(431));
    let answer = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'a'; 80]].concat();
    let mut head = ResponseHead::default();
    assert!(parse_response(&answer[..63], &limits, &Asked::default(), &mut head).is_ok());
    assert!(parse_response(&answer[..64], &limits, &Asked::default(), &mut head).is_err());
}

#[test]
fn a_reused_head_remembers_nothing() {
    let limits = HeadLimits::default();
    let mut reused = RequestHead::default();
    for case in REQUESTS {
        let mut fresh = RequestHead::default();
        let fresh_result = parse_request(case.bytes, &limits, &mut fresh);
        assert_eq!(parse_request(case.bytes, &limits, &mut reused), fresh_result, "{}", case.name);
        if let Ok(Progress::Complete { .. }) = fresh_result {
            assert_eq!(reused, fresh, "{}", case.name);
        }
    }
}

#[test]
fn bodies_are_bounded_outside_their_payload() {
    use subak_message::h1::{
        ChunkedFault, MAX_EXTENSION_BYTES, MAX_TRAILER_BYTES, MAX_TRAILER_FIELDS,
    };
    let mut decoder = ChunkedDecoder::new();
    let mut chunk = [b"1;".as_slice(), &[b'a'; 1000], b"\r\nx\r\n"].concat();
    let rounds = (0..).find(|_| match decoder.decode(&mut chunk.clone()) {
        Ok(_) => false,
        Err(error) => error.fault == ChunkedFault::ExtensionsTooLarge,
    });
    assert_eq!(rounds, Some(MAX_EXTENSION_BYTES as usize / 1001), "a bound over all chunks");
    decoder.reset();
    assert!(decoder.decode(&mut chunk).is_ok(), "reset starts the count anew");

    decoder.reset();
    assert!(decoder.decode(&mut b"0\r\nX: ".to_vec()).is_ok());
    let mut fits = [&[b'y'; MAX_TRAILER_BYTES - 7][..], b"\r\n\r\n"].concat();
    assert_eq!(decoder.decode(&mut fits).map(|decoded| decoded.finished), Ok(true));

    decoder.reset();
    assert!(decoder.decode(&mut b"0\r\nX: ".to_vec()).is_ok());
    let error = decoder.decode(&mut vec![b'y'; MAX_TRAILER_BYTES]).map_err(|error| error.fault);
    assert_eq!(error, Err(ChunkedFault::TrailersTooLarge));

    decoder.reset();
    let mut trailers = b"0\r\n".to_vec();
    trailers.extend(b"A:\r\n".repeat(MAX_TRAILER_FIELDS + 1));
    trailers.extend(b"\r\n");
    let error = decoder.decode(&mut trailers).map_err(|error| error.fault);
    assert_eq!(error, Err(ChunkedFault::TrailersTooLarge));
}

#[test]
fn a_chunk_has_at_most_16_digits_and_63_bits() {
    let size = |digits: &str| {
        let mut decoder = ChunkedDecoder::new();
        let text = format!("{digits}\r\nx");
        decoder.decode(&mut text.into_bytes()).ok().map(|_| decoder.chunk_remaining() + 1)
    };
    assert_eq!(size("0000000000000005"), Some(5));
    assert_eq!(size("00000000000000005"), None);
    assert_eq!(size("7fffffffffffffff"), Some(i64::MAX as u64));
    assert_eq!(size("8000000000000000"), None);
}

#[test]
fn trailers_that_would_act_as_head_fields_are_dropped() {
    let mut decoder = ChunkedDecoder::new();
    let mut text = b"0\r\nContent-Length: 5\r\nX-Sum: 1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\
        X-Forwarded-For: 1\r\nAuthorization: x\r\nSet-Cookie: y\r\ncontent_length: 1\r\nConnection: x\r\n\
        Grpc-Status: 0\r\nTrailer: z\r\n\r\nrest"
        .to_vec();
    let decoded = decoder.decode(&mut text).expect("trailers are good");
    assert!(decoded.finished && decoded.consumed == text.len() - 4);
    let names: Vec<_> = decoder.trailers().iter().map(|field| field.name).collect();
    assert_eq!(names, [&b"X-Sum"[..], b"Grpc-Status"]);
}

#[test]
fn steps_name_the_payload_without_moving_it() {
    let text = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nnext";
    let mut decoder = ChunkedDecoder::new();
    let (mut at, mut runs) = (0, Vec::new());
    loop {
        let step = decoder.next(&text[at..]).expect("good");
        let start = at + step.skip;
        at = start + step.data;
        if step.data > 0 {
            runs.push((start, step.data));
        }
        if step.finished {
            break;
        }
    }
    assert_eq!(runs, [(3, 3), (11, 2)]);
    assert_eq!(&text[at..], b"next");
    decoder.reset();
    assert_eq!(decoder.next(b"ff\r\n12").map(|step| step.data), Ok(2));
    assert_eq!(decoder.chunk_remaining(), 253);
}

#[test]
fn a_request_without_framing_has_no_body() {
    let mut head = RequestHead::default();
    let bytes = b"POST / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n";
    let Ok(Progress::Complete { consumed, framing }) =
        parse_request(bytes, &HeadLimits::default(), &mut head)
    else {
        panic!("complete")
    };
    assert_eq!((consumed, framing.body), (28, BodyLength::None));
}

/// The pieces of `Cookie` values that say something, with what they say trimmed.
fn pieces(values: &[String]) -> Vec<&str> {
    let pieces = values.iter().flat_map(|value| value.split(';')).map(str::trim);
    pieces.filter(|piece| !piece.is_empty()).collect()
}

proptest! {
    #[test]
    fn taking_a_cookie_out_leaves_the_others_as_they_were_written(
        values in prop::collection::vec("([sta]|s=|t=| |;|; |s=x;|é|\")(s|=|x| |\t|;|s=x){0,6}", 0..4),
    ) {
        let mut head = RequestHead::default();
        let limits = HeadLimits::default();
        let lines: String = values.iter().map(|value| format!("cookie:{value}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}X: s=1\r\n\r\n");
        let end = parse_request(text.as_bytes(), &limits, &mut head);
        prop_assert!(matches!(end, Ok(Progress::Complete { .. })), "{:?}", end);
        let is_it = |piece: &&str| piece.split_once('=').is_some_and(|(name, _)| name.trim() == "s");
        let (ours, others): (Vec<_>, Vec<_>) = pieces(&values).into_iter().partition(is_it);
        let found: Vec<_> = head.fields.cookies(b"s").collect();
        let said: Vec<_> = ours
            .iter()
            .filter_map(|piece| Some(piece.split_once('=')?.1.trim().as_bytes()))
            .collect();
        prop_assert_eq!(found, said);
        prop_assert_eq!(head.fields.remove_cookie(b"s"), !ours.is_empty());
        let out = RequestOut {
            target: b"/",
            default_host: b"",
            body: BodyLength::None,
            connection: ConnectionOut::Implied,
            expect_continue: false,
        };
        let mut written = Vec::new();
        write_request_head(&mut written, &head, &out);
        let mut again = RequestHead::default();
        let end = parse_request(&written, &limits, &mut again);
        prop_assert!(matches!(end, Ok(Progress::Complete { .. })), "{:?}", end);
        let left: Vec<String> = again
            .fields
            .get_all(Known::Cookie)
            .map(|value| String::from_utf8(value.to_vec()).unwrap())
            .collect();
        prop_assert_eq!(pieces(&left), others);
        prop_assert_eq!(again.fields.get_named(b"x"), Some(&b"s=1"[..]));
        // A field that has something else is left alone but for the cookie.
        for value in &values {
            if !pieces(std::slice::from_ref(value)).iter().any(is_it) {
                let count = |all: &[String]| all.iter().filter(|one| **one == value.trim()).count();
                prop_assert!(count(&left) >= 1, "{:?} is gone from {:?}", value, left);
            }
        }
    }
}
