//! What an agent says in one line: HAProxy's agent-check text, read by the side that asks.
//!
//! A program beside the endpoint answers every connection with one line and closes: words separated by
//! spaces, tabs or commas, in any order and any case, up to the first CR or LF or the end of what was
//! sent.
//!
//! | word | says |
//! |---|---|
//! | `75%` | weight, in hundredths of the configured one (at most 25,600 %) |
//! | `maxconn:30` | requests in flight at most; 0 takes the agent's limit back |
//! | `ready`, `drain`, `maint` | what the agent wants administratively |
//! | `up`, `down`, `stopped`, `fail` | whether the service works |
//! | `# text` | why, up to the end of the line; kept where the service's state is said |
//!
//! What is not said is not changed. Of two words of one kind the last counts. Words that are not known
//! are passed over, and the caller gets a warning for each, so that a typing error does not go
//! unnoticed. Every input means something: an empty line says nothing and changes nothing.
//!
//! One difference from HAProxy: a line that ends with the connection instead of a line end counts; it
//! ignores such a line. A connection that was *reset* gives no reply: do not parse what came before.
//!
//! Source: HAProxy configuration manual, `agent-check`. O(length), at most [`LINE_MAX`] bytes.

use std::fmt;

use crate::verdict::Admin;

/// Bytes of a line that are read; what lies behind is not looked at.
pub const LINE_MAX: usize = 1024;

/// Warnings about one line, at most.
const WARNINGS_MAX: usize = 8;

/// The largest weight an agent may ask for, in percent.
const PERCENT_MAX: u32 = 25_600;

/// Characters of a description and of an unknown word that are kept.
const REASON_MAX: usize = 200;
const WORD_MAX: usize = 32;

/// What one line says. What it does not say is none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentReply {
    /// The weight in hundredths of the configured one.
    pub weight_percent: Option<u32>,
    /// Ready, drain or maintenance.
    pub admin: Option<Admin>,
    /// Whether the service works.
    pub operational: Option<Operational>,
    /// Requests in flight at most; 0 takes the limit back.
    pub max_in_flight: Option<u32>,
    /// Why the service is in its state, if both are said. No characters that steer a terminal.
    pub reason: Option<String>,
}

/// Whether a service works, in the agent's word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Operational {
    /// It works.
    #[default]
    Up,
    /// It does not.
    Down,
    /// It was stopped on purpose.
    Stopped,
    /// It runs and fails its own tests.
    Failed,
}

impl fmt::Display for Operational {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Operational::Up => "up",
            Operational::Down => "down",
            Operational::Stopped => "stopped",
            Operational::Failed => "fail",
        })
    }
}

/// What was odd about a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AgentWarning {
    /// A word that means nothing.
    UnknownWord(String),
    /// A weight or a limit whose number cannot be read or is too large.
    BadNumber(String),
    /// Two words of one kind that differ; the last counts.
    Contradiction(&'static str),
    /// The line is longer than what is read. A word it was cut in was left out.
    TooLong,
}

impl fmt::Display for AgentWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentWarning::UnknownWord(word) => write!(out, "unknown word {word:?}"),
            AgentWarning::BadNumber(word) => write!(out, "a number that cannot be used: {word:?}"),
            AgentWarning::Contradiction(kind) => {
                write!(out, "more than one {kind} in a line; the last one counts")
            }
            AgentWarning::TooLong => write!(out, "a line of more than {LINE_MAX} bytes was cut"),
        }
    }
}

/// Whether enough was received to parse: a line end, or more than is read of a line.
pub fn line_is_complete(received: &[u8]) -> bool {
    received.len() > LINE_MAX || received.iter().any(is_line_end)
}

impl AgentReply {
    /// Reads what an agent sent until its line was complete or it closed the connection.
    pub fn parse(received: &[u8]) -> (AgentReply, Vec<AgentWarning>) {
        let mut reader = Reader::default();
        let end = received.iter().position(is_line_end).unwrap_or(received.len());
        let cut = end > LINE_MAX;
        let mut rest = &received[..end.min(LINE_MAX)];
        if cut {
            reader.warn(AgentWarning::TooLong);
        }
        loop {
            rest = skip_separators(rest);
            if rest.is_empty() {
                break;
            }
            if let Some(text) = rest.strip_prefix(b"#") {
                reader.reply.reason = description(text);
                break;
            }
            let length = rest.iter().position(is_separator).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(length);
            // Half a word can be another word: maxconn:3 of maxconn:30.
            if !(cut && behind.is_empty()) {
                reader.word(word);
            }
            rest = behind;
        }
        if reader.reply.operational.is_none() {
            reader.reply.reason = None;
        }
        (reader.reply, reader.warnings)
    }
}

#[derive(Default)]
struct Reader {
    reply: AgentReply,
    warnings: Vec<AgentWarning>,
}

impl Reader {
    fn word(&mut self, word: &[u8]) {
        let lower = word.to_ascii_lowercase();
        match lower.as_slice() {
            b"ready" => self.admin(Admin::Ready),
            b"drain" => self.admin(Admin::Drain),
            b"maint" => self.admin(Admin::Maintenance),
            b"up" => self.operational(Operational::Up),
            b"down" => self.operational(Operational::Down),
            b"stopped" => self.operational(Operational::Stopped),
            b"fail" => self.operational(Operational::Failed),
            lower => {
                if let Some(digits) = lower.strip_suffix(b"%") {
                    let percent = number(digits).filter(|percent| *percent <= PERCENT_MAX);
                    self.set(|reply| &mut reply.weight_percent, percent, "weight", word);
                } else if let Some(digits) = lower.strip_prefix(b"maxconn:") {
                    self.set(|reply| &mut reply.max_in_flight, number(digits), "maxconn", word);
                } else {
                    self.warn(AgentWarning::UnknownWord(shown(word, WORD_MAX)));
                }
            }
        }
    }

    fn admin(&mut self, said: Admin) {
        self.set(|reply| &mut reply.admin, Some(said), "administrative state", b"");
    }

    fn operational(&mut self, said: Operational) {
        self.set(|reply| &mut reply.operational, Some(said), "state of the service", b"");
    }

    fn set<T: PartialEq + Copy>(
        &mut self,
        field: impl Fn(&mut AgentReply) -> &mut Option<T>,
        said: Option<T>,
        kind: &'static str,
        word: &[u8],
    ) {
        let Some(said) = said else {
            return self.warn(AgentWarning::BadNumber(shown(word, WORD_MAX)));
        };
        let before = field(&mut self.reply).replace(said);
        if before.is_some_and(|before| before != said) {
            self.warn(AgentWarning::Contradiction(kind));
        }
    }

    fn warn(&mut self, warning: AgentWarning) {
        if self.warnings.len() < WARNINGS_MAX && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',')
}

fn skip_separators(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_separator(byte)).unwrap_or(text.len());
    &text[start..]
}

fn number(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok()?;
    if is_number { text.parse().ok() } else { None }
}

fn description(text: &[u8]) -> Option<String> {
    let text = shown(text.trim_ascii(), REASON_MAX);
    (!text.is_empty()).then_some(text)
}

/// Text from outside as a log may have it: nothing that steers a terminal, not more than `max`
/// characters.
fn shown(text: &[u8], max: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let printable = |c: char| if steers(c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(max).map(printable).collect()
}

/// Control characters, what ends a line in Unicode, and what turns the direction of the text round it.
/// Source: Unicode, Zl and Zp, and the property Bidi_Control.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}'
                | '\u{61c}' | '\u{200e}' | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> AgentReply {
        let (reply, warnings) = AgentReply::parse(line.as_bytes());
        assert_eq!(warnings, [], "{line:?}");
        reply
    }

    fn warned(line: &[u8]) -> (AgentReply, Vec<String>) {
        let (reply, warnings) = AgentReply::parse(line);
        (reply, warnings.iter().map(AgentWarning::to_string).collect())
    }

    const NOTHING: AgentReply = AgentReply {
        weight_percent: None,
        admin: None,
        operational: None,
        max_in_flight: None,
        reason: None,
    };

    #[test]
    fn the_words_of_the_manual() {
        let weight = AgentReply { weight_percent: Some(75), ..NOTHING };
        assert_eq!(parse("75%\n"), weight);
        let up = AgentReply { operational: Some(Operational::Up), ..weight };
        assert_eq!(parse("up 75%\r\n"), up);
        assert_eq!(parse("maxconn:30\n"), AgentReply { max_in_flight: Some(30), ..NOTHING });
        for (word, admin) in
            [("ready", Admin::Ready), ("drain", Admin::Drain), ("maint", Admin::Maintenance)]
        {
            assert_eq!(parse(word), AgentReply { admin: Some(admin), ..NOTHING });
        }
        for (word, operational) in [
            ("down", Operational::Down),
            ("stopped", Operational::Stopped),
            ("fail", Operational::Failed),
        ] {
            assert_eq!(parse(word), AgentReply { operational: Some(operational), ..NOTHING });
            assert_eq!(operational.to_string(), word);
        }
    }

    #[test]
    fn words_come_in_any_order_case_and_separation() {
        let all = AgentReply {
            weight_percent: Some(50),
            admin: Some(Admin::Ready),
            operational: Some(Operational::Down),
            max_in_flight: Some(7),
            reason: Some("disk, full".into()),
        };
        for line in [
            "ready down 50% maxconn:7 # disk, full\n",
            ",\t 50%,DOWN,MaxConn:7,,READY\t#disk, full",
            "maxconn:7 ready,50% Down #  disk, full \r\nup 1%",
        ] {
            assert_eq!(parse(line), all, "{line:?}");
        }
    }

    #[test]
    fn a_description_belongs_to_a_state_of_the_service() {
        assert_eq!(parse("drain # soon\n"), AgentReply { admin: Some(Admin::Drain), ..NOTHING });
        assert_eq!(parse("up #\n").reason, None);
        assert_eq!(parse("up # well # again\n").reason.as_deref(), Some("well # again"));
        let (reply, warnings) = warned(b"down#x\n");
        assert_eq!((reply, warnings), (NOTHING, vec!["unknown word \"down#x\"".to_owned()]));
        let reason = parse("fail # a\u{1b}[31mb\n").reason;
        assert_eq!(reason.as_deref(), Some("a\u{fffd}[31mb"));
    }

    #[test]
    fn no_text_ends_a_line_of_the_log_or_turns_it_round() {
        let steering =
            "\u{85}\u{2028}\u{2029}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}";
        let reason = parse(&format!("fail # a{steering}b\n")).reason;
        assert_eq!(reason, Some(format!("a{}b", "\u{fffd}".repeat(10))));
        let plain = "\u{200d}\u{2010}\u{2027}\u{202f}\u{2065}\u{206a}é";
        assert_eq!(parse(&format!("fail # {plain}\n")).reason.as_deref(), Some(plain));
        let (_, warnings) = AgentReply::parse("x\u{202e}y\n".as_bytes());
        assert_eq!(warnings, [AgentWarning::UnknownWord("x\u{fffd}y".into())]);
    }

    #[test]
    fn nothing_said_is_nothing_changed() {
        for line in ["", "\n", "\r\nup", " ,\t", "# only words"] {
            assert_eq!(parse(line), NOTHING, "{line:?}");
        }
    }

    #[test]
    fn what_is_odd_is_said_and_the_rest_counts() {
        let (reply, warnings) = warned(b"up wieght=3 10%\n");
        assert_eq!((reply.operational, reply.weight_percent), (Some(Operational::Up), Some(10)));
        assert_eq!(warnings, ["unknown word \"wieght=3\""]);
        for word in ["%", "-5%", "1.5%", "25601%", "99999999999%", "maxconn:", "maxconn:x"] {
            let (reply, warnings) = warned(word.as_bytes());
            assert_eq!(reply, NOTHING);
            assert_eq!(warnings, [format!("a number that cannot be used: {word:?}")]);
        }
        let (reply, warnings) = warned(b"up 10% down 20% up\n");
        assert_eq!((reply.operational, reply.weight_percent), (Some(Operational::Up), Some(20)));
        assert_eq!(
            warnings,
            [
                "more than one state of the service in a line; the last one counts",
                "more than one weight in a line; the last one counts"
            ]
        );
        assert_eq!(parse("25600% maxconn:4294967295").weight_percent, Some(25_600));
    }

    #[test]
    fn a_line_is_bounded_and_no_word_is_cut_in_two() {
        let mut line = vec![b' '; LINE_MAX - 9];
        line.splice(0..2, *b"up");
        line.extend(b"maxconn:30");
        assert!(line_is_complete(&line));
        let (reply, warnings) = warned(&line);
        assert_eq!(reply, AgentReply { operational: Some(Operational::Up), ..NOTHING });
        assert_eq!(warnings, ["a line of more than 1024 bytes was cut"]);
        // As long as allowed is not too long.
        line.remove(2);
        assert!(!line_is_complete(&line));
        assert_eq!(warned(&line).0.max_in_flight, Some(30));
        assert!(line_is_complete(b"up\n") && line_is_complete(b"\r") && !line_is_complete(b"up"));
    }

    #[test]
    fn warnings_are_few_and_each_is_given_once() {
        assert_eq!(warned(b"a a a a").1.len(), 1);
        assert_eq!(warned(b"a b c d e f g h i j k").1.len(), WARNINGS_MAX);
    }
}
