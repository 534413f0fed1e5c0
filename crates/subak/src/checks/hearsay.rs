//! What of an agent's answers is worth a line in the log: each kind of problem when it comes up, and no
//! kind more than once in [`PAUSE`].
//!
//! Agents are asked every few seconds, and a program that errs does so every time, or every other
//! time, or in another way each time. A problem that lasts is told once. One that comes and goes, or
//! whose text changes, is told again when it is there and `PAUSE` is over. (Of a reason only changes
//! are heard, so one that comes too soon after another is left to the status page.)
//!
//! | kind | what may change within it |
//! |---|---|
//! | no answer | why |
//! | unknown words, bad numbers, contradictions, a long line | which |
//! | another reason while the endpoint stays down | the reason |
//!
//! While an agent is silent, nothing is known of its lines: what was odd about them is not over.
//! O(warnings of a line) an answer, a few hundred bytes an agent.

use std::collections::BTreeMap;
use std::time::Duration;

use subak_base::Tick;
use subak_health::AgentWarning;
use subak_probe::Miss;

/// Between two log lines about one kind of problem of one agent.
const PAUSE: Duration = Duration::from_secs(60);

/// What has been told of one agent.
#[derive(Debug, Default)]
pub(crate) struct Hearsay(BTreeMap<Kind, Told>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Silent,
    UnknownWord,
    BadNumber,
    Contradiction,
    TooLong,
    Reason,
}

/// Of these, what is not in an answer is over.
const IN_A_LINE: [Kind; 4] =
    [Kind::UnknownWord, Kind::BadNumber, Kind::Contradiction, Kind::TooLong];

#[derive(Debug)]
struct Told {
    text: String,
    at: Tick,
    /// It was gone since.
    is_over: bool,
}

/// Something to log.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// The agent does not answer, and why.
    Silent(String),
    /// It does, after that was told.
    AnswersAgain,
    /// What was odd about its line.
    Odd(String),
}

impl Hearsay {
    /// Takes in what was odd about a line, or why there was none.
    pub(crate) fn hear(&mut self, line: Result<&[AgentWarning], &Miss>, now: Tick) -> Vec<News> {
        let warnings = match line {
            Ok(warnings) => warnings,
            Err(miss) => {
                let text = miss.to_string();
                let is_news = self.is_news(Kind::Silent, &text, now);
                return is_news.then_some(News::Silent(text)).into_iter().collect();
            }
        };
        let mut news = Vec::new();
        if self.ends(Kind::Silent) {
            news.push(News::AnswersAgain);
        }
        for kind in IN_A_LINE {
            let texts = warnings.iter().filter(|warning| kind_of(warning) == kind);
            let text = texts.map(AgentWarning::to_string).collect::<Vec<_>>().join(", ");
            if text.is_empty() {
                self.ends(kind);
            } else if self.is_news(kind, &text, now) {
                news.push(News::Odd(text));
            }
        }
        news
    }

    /// Whether it is to be told that the agent now gives this reason for the same state.
    pub(crate) fn argues(&mut self, reason: &str, now: Tick) -> bool {
        self.is_news(Kind::Reason, reason, now)
    }

    fn is_news(&mut self, kind: Kind, text: &str, now: Tick) -> bool {
        if let Some(told) = self.0.get(&kind) {
            let is_known = !told.is_over && told.text == text;
            if is_known || now.since(told.at) < PAUSE {
                return false;
            }
        }
        self.0.insert(kind, Told { text: text.to_owned(), at: now, is_over: false });
        true
    }

    /// There is no such problem now. Whether that is new.
    fn ends(&mut self, kind: Kind) -> bool {
        let told = self.0.get_mut(&kind);
        told.is_some_and(|told| !std::mem::replace(&mut told.is_over, true))
    }
}

fn kind_of(warning: &AgentWarning) -> Kind {
    match warning {
        AgentWarning::UnknownWord(_) => Kind::UnknownWord,
        AgentWarning::BadNumber(_) => Kind::BadNumber,
        AgentWarning::Contradiction(_) => Kind::Contradiction,
        AgentWarning::TooLong => Kind::TooLong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_health::AgentReply;

    /// What is told when an agent says these lines in turn, one every five seconds.
    fn told(lines: &[&str], times: u64) -> Vec<(u64, News)> {
        let mut hearsay = Hearsay::default();
        let mut all = Vec::new();
        for (number, line) in (0..times).zip(lines.iter().cycle()) {
            let warnings = AgentReply::parse(line.as_bytes()).1;
            let seconds = number * 5;
            let news = hearsay.hear(Ok(&warnings), Tick::from_millis(seconds * 1000));
            all.extend(news.into_iter().map(|news| (seconds, news)));
        }
        all
    }

    fn odd(seconds: u64, text: &str) -> (u64, News) {
        (seconds, News::Odd(text.to_owned()))
    }

    #[test]
    fn a_problem_that_lasts_is_told_once() {
        assert_eq!(told(&["up a"], 100), [odd(0, "unknown word \"a\"")]);
        let both = [odd(0, "unknown word \"a\", unknown word \"b\""), {
            odd(0, "a number that cannot be used: \"x%\"")
        }];
        assert_eq!(told(&["a b x%"], 100), both);
    }

    #[test]
    fn one_that_comes_and_goes_or_changes_is_told_once_a_minute() {
        let word = |seconds, word: &str| odd(seconds, &format!("unknown word {word:?}"));
        assert_eq!(told(&["a", "up"], 26), [word(0, "a"), word(60, "a"), word(120, "a")]);
        assert_eq!(
            told(&["a", "b", "c", "d", "e"], 25),
            [word(0, "a"), word(60, "c"), word(120, "e")]
        );
        // What comes back for good within the minute is told when that is over.
        let lines = [&["a", "up"][..], &["a"; 40]].concat();
        assert_eq!(told(&lines, 42), [word(0, "a"), word(60, "a")]);
    }

    #[test]
    fn silence_is_told_and_so_is_its_end_but_not_all_the_time() {
        let mut hearsay = Hearsay::default();
        let warnings = AgentReply::parse(b"a").1;
        let mut all = Vec::new();
        for seconds in (0..=70).step_by(5) {
            let miss = Miss::Failed(subak_health::ProbeFailure::Refused);
            let line = if seconds % 10 == 0 { Err(&miss) } else { Ok(&warnings[..]) };
            let news = hearsay.hear(line, Tick::from_millis(seconds * 1000));
            all.extend(news.into_iter().map(|news| (seconds, news)));
        }
        let silent = |seconds| (seconds, News::Silent("connection refused".into()));
        let word = odd(5, "unknown word \"a\"");
        let expected =
            [silent(0), (5, News::AnswersAgain), word, silent(60), (65, News::AnswersAgain)];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_reason_with_a_clock_in_it_is_told_once_a_minute() {
        let mut hearsay = Hearsay::default();
        let argues = |second: &u64| {
            hearsay.argues(&format!("down since {second} s"), Tick::from_millis(second * 1000))
        };
        assert_eq!((0..130).filter(argues).collect::<Vec<_>>(), [0, 60, 120]);
    }
}
