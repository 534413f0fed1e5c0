//! The name of one decision: of where one request went, and why.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// A random number that a request carries where somebody wants to find it again: in an answer's
/// header, a line of the access log, a pick log. Shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DecisionId(NonZeroU64);

impl DecisionId {
    /// Digits of one as text.
    pub const DIGITS: usize = 16;

    /// Of a random word. 0 is no name and becomes another.
    pub fn of(random: u64) -> DecisionId {
        DecisionId(NonZeroU64::new(random).unwrap_or(NonZeroU64::MAX))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// This is not the name of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoDecisionId;

impl fmt::Display for NoDecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decision id has 16 hexadecimal digits, such as 00c0ffee00c0ffee")
    }
}

impl std::error::Error for NoDecisionId {}

impl FromStr for DecisionId {
    type Err = NoDecisionId;

    fn from_str(text: &str) -> Result<DecisionId, NoDecisionId> {
        let is_whole = text.len() == DecisionId::DIGITS;
        let digits = is_whole && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.and_then(NonZeroU64::new).map(DecisionId).ok_or(NoDecisionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_is_shown() {
        for random in [0, 1, 0xc0_ffee, u64::MAX] {
            let id = DecisionId::of(random);
            assert_eq!((id.to_string().len(), id.to_string().parse()), (16, Ok(id)));
        }
        assert_eq!(DecisionId::of(0xc0_ffee).to_string(), "0000000000c0ffee");
        for wrong in ["", "c0ffee", "0000000000000000", "+000000000c0ffee", "00000000000000001"] {
            assert_eq!(wrong.parse::<DecisionId>(), Err(NoDecisionId), "{wrong}");
        }
    }
}
