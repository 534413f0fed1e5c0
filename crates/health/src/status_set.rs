//! The statuses a probe accepts: `200-399`, `200,204`, `2xx,304`.
//!
//! Read from text with the place of what is wrong; shown in one canonical form (sorted, merged).
//! Statuses below 200 are no answers and those above 599 do not exist, so neither can be meant.
//! A bit per status: 56 bytes, `contains` is O(1).

use std::error::Error;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

const FIRST: u16 = 200;
const LAST: u16 = 599;
const WORDS: usize = ((LAST - FIRST) as usize + 1).div_ceil(64);

/// A set of final statuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusSet([u64; WORDS]);

impl StatusSet {
    /// Whether the status is accepted.
    pub fn contains(&self, status: u16) -> bool {
        (FIRST..=LAST).contains(&status) && {
            let bit = usize::from(status - FIRST);
            self.0[bit / 64] >> (bit % 64) & 1 == 1
        }
    }

    fn insert(&mut self, statuses: RangeInclusive<u16>) {
        for status in statuses {
            let bit = usize::from(status - FIRST);
            self.0[bit / 64] |= 1 << (bit % 64);
        }
    }
}

/// Success and redirects, 200-399.
impl Default for StatusSet {
    fn default() -> StatusSet {
        let mut set = StatusSet([0; WORDS]);
        set.insert(200..=399);
        set
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<StatusSet, StatusSetError> {
        let mut set = StatusSet([0; WORDS]);
        let mut start = 0;
        for item in text.split(',') {
            let indent = item.len() - item.trim_start().len();
            let word = item.trim();
            let at = start + indent..start + indent + word.len();
            let statuses = item_of(word).map_err(|problem| StatusSetError { at, problem })?;
            set.insert(statuses);
            start += item.len() + 1;
        }
        Ok(set)
    }
}

fn item_of(word: &str) -> Result<RangeInclusive<u16>, StatusProblem> {
    if word.is_empty() {
        return Err(StatusProblem::Empty);
    }
    if let Some(class) = word.strip_suffix("xx").or_else(|| word.strip_suffix("XX")) {
        let class = match class {
            "2" => 200,
            "3" => 300,
            "4" => 400,
            "5" => 500,
            _ => return Err(StatusProblem::NotAStatus(word.to_owned())),
        };
        return Ok(class..=class + 99);
    }
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last) = (status_of(first.trim())?, status_of(last.trim())?);
    if first > last {
        return Err(StatusProblem::Backwards(first, last));
    }
    Ok(first..=last)
}

fn status_of(text: &str) -> Result<u16, StatusProblem> {
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let status = if is_number { text.parse().ok() } else { None };
    match status {
        Some(status) if (FIRST..=LAST).contains(&status) => Ok(status),
        Some(status) => Err(StatusProblem::NotFinal(status)),
        None => Err(StatusProblem::NotAStatus(text.to_owned())),
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut status = FIRST;
        let mut comma = "";
        while status <= LAST {
            let first = status;
            while status <= LAST && self.contains(status) {
                status += 1;
            }
            match status - first {
                0 => {
                    status += 1;
                    continue;
                }
                1 => write!(out, "{comma}{first}")?,
                _ => write!(out, "{comma}{first}-{}", status - 1)?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for StatusSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "StatusSet({self})")
    }
}

/// Why a text is no set of statuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusSetError {
    /// Where in the text, in bytes.
    pub at: Range<usize>,
    /// What is wrong there.
    pub problem: StatusProblem,
}

/// What is wrong with one part of a set of statuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatusProblem {
    /// There is nothing where a status should be.
    Empty,
    /// Not a number of three digits, nor a class.
    NotAStatus(String),
    /// No final answer has this status.
    NotFinal(u16),
    /// A range that begins after its end.
    Backwards(u16, u16),
}

impl fmt::Display for StatusProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusProblem::Empty => {
                out.write_str("a status is missing; write for example 200-399 or 200,204")
            }
            StatusProblem::NotAStatus(word) => {
                write!(out, "{word:?} is no status; write for example 204, 200-399 or 2xx")
            }
            StatusProblem::NotFinal(status) => {
                write!(out, "no answer ends with status {status}; they are 200 to 599")
            }
            StatusProblem::Backwards(first, last) => {
                write!(out, "{first}-{last} is empty; did you mean {last}-{first}?")
            }
        }
    }
}

impl fmt::Display for StatusSetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(out)
    }
}

impl Error for StatusSetError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> StatusSet {
        text.parse().unwrap()
    }

    #[test]
    fn the_forms_that_are_written() {
        assert_eq!(set("200-399"), StatusSet::default());
        assert_eq!(set("200-399").to_string(), "200-399");
        assert_eq!(set("204, 200 ,205").to_string(), "200,204-205");
        assert_eq!(set("2xx,304,3XX,500").to_string(), "200-399,500");
        assert_eq!(set("200-599").to_string(), "200-599");
        assert_eq!(set(" 300 - 301 ").to_string(), "300-301");
    }

    #[test]
    fn only_what_is_written_is_in_it() {
        let set = set("204,301-302,599");
        let members: Vec<_> = (0..=u16::MAX).filter(|status| set.contains(*status)).collect();
        assert_eq!(members, [204, 301, 302, 599]);
    }

    #[test]
    fn an_error_points_at_its_place_and_says_what_to_do() {
        let error = |text: &str| {
            let error = text.parse::<StatusSet>().unwrap_err();
            (text[error.at.clone()].to_owned(), error.to_string())
        };
        let empty = "a status is missing; write for example 200-399 or 200,204";
        assert_eq!(error(""), (String::new(), empty.into()));
        assert_eq!(error("200,,204"), (String::new(), empty.into()));
        assert_eq!(error("200, 20O").0, "20O");
        assert_eq!(
            error("200, 20O").1,
            "\"20O\" is no status; write for example 204, 200-399 or 2xx"
        );
        assert_eq!(error("100-399").1, "no answer ends with status 100; they are 200 to 599");
        assert_eq!(error("1xx").0, "1xx");
        assert_eq!(error("204, 399-200").0, "399-200");
        assert_eq!(error("399-200").1, "399-200 is empty; did you mean 200-399?");
        assert_eq!(error("+20").0, "+20");
        assert_eq!(error("200-").0, "200-");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_as_the_same_set(
            ranges in prop::collection::vec((200_u16..600, 0_u16..60), 1..20),
        ) {
            let parts: Vec<_> = ranges
                .iter()
                .map(|(first, more)| format!("{first}-{}", (first + more).min(599)))
                .collect();
            let read = set(&parts.join(","));
            for status in 0..700 {
                let expected = ranges.iter().any(|(first, more)| {
                    (*first..=(first + more).min(599)).contains(&status)
                });
                prop_assert_eq!(read.contains(status), expected);
            }
            prop_assert_eq!(set(&read.to_string()), read);
        }

        #[test]
        fn no_text_panics_and_every_error_lies_in_it(text in "[0-9xX,\\- é]{0,12}") {
            if let Err(error) = text.parse::<StatusSet>() {
                prop_assert!(text.get(error.at).is_some());
            }
        }
    }
}
