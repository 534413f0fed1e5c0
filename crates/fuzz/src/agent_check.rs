//! An agent's line: what a reading of one word after the other says, from the back to the front.

use subak_health::{Admin, AgentReply, AgentWarning, LINE_MAX, Operational, line_is_complete};

/// Checks one input.
pub fn check(data: &[u8]) {
    let (reply, warnings) = AgentReply::parse(data);
    let (expected, odd) = plain(data);
    assert_eq!(reply, expected);
    assert_eq!(warnings.is_empty(), !odd, "{warnings:?}");
    for warning in &warnings {
        let shown = warning.to_string();
        assert!(!shown.is_empty() && shown.len() < 1000);
        if let AgentWarning::UnknownWord(word) | AgentWarning::BadNumber(word) = warning {
            assert!(word.chars().count() <= 32 && !word.contains(steers));
        }
    }
    // A line that is complete stays what it is, whatever else comes.
    if line_is_complete(data) {
        let more = [data, b"\nmaint down 1%"].concat();
        assert_eq!(AgentReply::parse(&more), (reply, warnings));
    }
}

/// What a line says, and whether anything about it is odd.
fn plain(data: &[u8]) -> (AgentReply, bool) {
    let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r';
    let mut line = data.split(ends).next().unwrap_or_default();
    let mut odd = false;
    let mut half = false;
    if line.len() > LINE_MAX {
        line = &line[..LINE_MAX];
        (odd, half) = (true, true);
    }
    let apart = |byte: &u8| b" \t,".contains(byte);
    let (said, reason) =
        match (0..line.len()).find(|at| line[*at] == b'#' && (*at == 0 || apart(&line[*at - 1]))) {
            Some(at) => (&line[..at], Some(&line[at + 1..])),
            None => (line, None),
        };
    let mut words: Vec<&[u8]> = said.split(apart).collect();
    // Cut in the middle of a word: there is neither a description nor a separator behind it.
    if half && reason.is_none() {
        words.pop();
    }
    let mut reply = AgentReply::default();
    for word in words.iter().rev().filter(|word| !word.is_empty()) {
        let text = String::from_utf8_lossy(word).to_ascii_lowercase();
        odd |= match text.as_str() {
            "ready" => first(&mut reply.admin, Admin::Ready),
            "drain" => first(&mut reply.admin, Admin::Drain),
            "maint" => first(&mut reply.admin, Admin::Maintenance),
            "up" => first(&mut reply.operational, Operational::Up),
            "down" => first(&mut reply.operational, Operational::Down),
            "stopped" => first(&mut reply.operational, Operational::Stopped),
            "fail" => first(&mut reply.operational, Operational::Failed),
            text => match (text.strip_suffix('%'), text.strip_prefix("maxconn:")) {
                (Some(digits), _) => match number(digits) {
                    Some(percent) if percent <= 25_600 => first(&mut reply.weight_percent, percent),
                    _ => true,
                },
                (None, Some(digits)) => match number(digits) {
                    Some(limit) => first(&mut reply.max_in_flight, limit),
                    None => true,
                },
                (None, None) => true,
            },
        };
    }
    if reply.operational.is_some() {
        let text = String::from_utf8_lossy(reason.unwrap_or_default().trim_ascii()).into_owned();
        let safe = text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c });
        reply.reason = Some(safe.take(200).collect()).filter(|text: &String| !text.is_empty());
    }
    (reply, odd)
}

/// Sets what nothing behind it has set. Whether that says something else.
fn first<T: PartialEq>(field: &mut Option<T>, said: T) -> bool {
    match field {
        Some(last) => *last != said,
        None => {
            *field = Some(said);
            false
        }
    }
}

/// What no log line may hold.
fn steers(c: char) -> bool {
    let bidi = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    c.is_control() || "\u{2028}\u{2029}".contains(c) || bidi.contains(c)
}

fn number(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}
