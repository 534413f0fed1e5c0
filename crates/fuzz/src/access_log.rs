//! Access logs: whatever is in them, every line that is not empty is a request or counted as none, what
//! is read can be asked again, and plain lines in the combined format are read as a slow reading does.

use std::net::IpAddr;

use subak_trace::{Asked, Format, LogError, Reading, asked_bytes, read_bytes};

/// How the first byte of an input says that the rest is written.
const FORMATS: [Option<&str>; 6] = [
    None,
    Some("json"),
    Some("combined"),
    Some("common"),
    Some("haproxy"),
    Some("$msec $remote_addr \"$request\" $upstream_addr $request_time $status $bytes_sent"),
];

/// Checks one input: a byte for the format, and a log.
pub fn check(data: &[u8]) {
    let Some((format, log)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    let reading = Reading {
        format: format.map(|format| Format::read(format).expect("a format")),
        ..Reading::default()
    };
    let lines = is_plain(log).then(|| lines(log));
    if let Ok(read) = read_bytes(log.to_vec(), &reading) {
        let counts = &read.counts;
        assert!(counts.bad <= counts.lines);
        let first = counts.first_bad.as_ref().map_or(1, |(number, _)| *number);
        assert!((1..=counts.lines).contains(&first));
        assert!(lines.as_ref().is_none_or(|lines| lines.len() as u64 == counts.lines));
    }
    match asked_bytes(log.to_vec(), &reading) {
        Ok(asked) => {
            can_be_asked_again(&asked);
            if let Some(lines) = &lines {
                let all = asked.requests.len() as u64 + asked.left_out.total();
                assert_eq!(all, lines.len() as u64);
                if format == Some("combined") {
                    as_a_slow_reading_says(&asked, lines);
                }
            }
        }
        Err(error @ (LogError::Io(..) | LogError::Format(_) | LogError::Empty(_))) => {
            let said = error.to_string();
            assert!(!said.is_empty() && !said.contains(['\u{1b}', '\u{7}']), "{said:?}");
        }
    }
}

/// Not compressed.
fn is_plain(log: &[u8]) -> bool {
    let signs: [&[u8]; 6] = [
        &[0x1f, 0x8b],
        &[0x28, 0xb5, 0x2f, 0xfd],
        b"\xfd7zXZ\0",
        b"BZh",
        &[4, 0x22, 0x4d, 0x18],
        b"PK",
    ];
    !signs.iter().any(|sign| log.starts_with(sign))
}

/// Lines that are not empty.
fn lines(log: &[u8]) -> Vec<&[u8]> {
    let lines = log.split(|byte| *byte == b'\n');
    let bare = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    bare.filter(|line| !line.is_empty()).collect()
}

fn can_be_asked_again(asked: &Asked) {
    assert!(asked.requests.is_sorted_by_key(|one| one.at));
    assert!(asked.requests.first().is_none_or(|first| first.at.is_zero()));
    for path in &asked.paths {
        assert!(
            path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()),
            "{path}"
        );
    }
    let trace = asked.clone().trace();
    assert_eq!(trace.requests.len(), asked.requests.len());
    for (traced, one) in trace.requests.iter().zip(&asked.requests) {
        assert_eq!(
            trace.objects[traced.object as usize][..],
            *asked.paths[one.path as usize].as_bytes()
        );
        let named = one.client.map(|client| asked.clients[client as usize]);
        let client = trace.clients[traced.client as usize];
        assert!(named.is_none_or(|named| named == client));
    }
}

/// Where all lines are of the simplest kind, their clients and paths are just those that were asked.
fn as_a_slow_reading_says(asked: &Asked, lines: &[&[u8]]) {
    let slowly: Option<Vec<(String, String)>> = lines.iter().map(|line| simple(line)).collect();
    let Some(mut slowly) = slowly else { return };
    if asked.left_out.total() > 0 {
        assert!(asked.left_out.astray > 0, "{}", asked.left_out);
        return;
    }
    let one = |one: &subak_trace::AskedOnce| {
        let client = one.client.map(|client| asked.clients[client as usize].to_string());
        (client.unwrap_or_default(), asked.paths[one.path as usize].clone())
    };
    let mut read: Vec<_> = asked.requests.iter().map(one).collect();
    read.sort();
    slowly.sort();
    assert_eq!(read, slowly);
}

/// Client and path of a line like `10.0.0.1 - - [21/Nov/2026:17:12:01 +0000] "GET /a HTTP/1.1" 200 5
/// "-" "-"`, where nothing is odd.
fn simple(line: &[u8]) -> Option<(String, String)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let client: IpAddr = words.next()?.parse().ok()?;
    let (first, second) = (words.next()?, words.next()?);
    let (moment, zone) = (words.next()?, words.next()?);
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let (status, bytes) = (words.next()?, words.next()?);
    let rest: Vec<&str> = words.collect();
    let moment = moment.strip_prefix("[2")?;
    let is_moment = moment.len() == 19
        && moment.bytes().zip("1/Nov/2026:17:12:01".bytes()).enumerate().all(|(at, (is, like))| {
            match at {
                11 | 12 | 14 | 15 | 17 | 18 => is.is_ascii_digit() && is < b'3',
                _ => is == like,
            }
        });
    let is_number = |word: &str| {
        (1..=3).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_simple = is_moment
        && (first, second, zone) == ("-", "-", "+0000]")
        && (method, version) == ("\"GET", "HTTP/1.1\"")
        && path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/')
        && is_number(status)
        && status.len() == 3
        && is_number(bytes)
        && rest == ["\"-\"", "\"-\""];
    is_simple.then(|| (client.to_string(), path.to_owned()))
}
