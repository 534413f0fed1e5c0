//! What became of a claim, in one of a few words.

use serde::{Deserialize, Serialize};

/// A claim, what became of it, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// What was claimed, asserted or asked.
    pub claim: String,
    /// What became of it.
    pub word: Word,
    /// The figures or the reason.
    pub because: String,
}

impl Verdict {
    /// A verdict.
    pub fn new(claim: impl Into<String>, word: Word, because: impl Into<String>) -> Verdict {
        Verdict { claim: claim.into(), word, because: because.into() }
    }
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// What was asserted is so.
    Holds,
    /// What was asserted is not so.
    Fails,
    /// Somebody else's result came out here too.
    Reproduced,
    /// Somebody else's result did not come out here.
    NotReproduced,
    /// It cannot be held against what was claimed.
    NotComparable,
    /// It was not tried.
    NotRun,
    /// What was compared does not differ by more than chance, or by too little to matter.
    NoDifference,
    /// What was measured does not suffice to tell.
    CannotTell,
    /// Something other than what was to be measured decided the result.
    Invalid,
}

/// How a word is shown: is it good news?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Good,
    Bad,
    Neutral,
    Careful,
}

impl Word {
    /// As people read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Word::Holds => "holds",
            Word::Fails => "fails",
            Word::Reproduced => "reproduced",
            Word::NotReproduced => "not reproduced",
            Word::NotComparable => "not comparable",
            Word::NotRun => "not run",
            Word::NoDifference => "no difference",
            Word::CannotTell => "cannot tell",
            Word::Invalid => "invalid",
        }
    }

    pub(crate) const fn mood(self) -> Mood {
        match self {
            Word::Holds | Word::Reproduced => Mood::Good,
            Word::Fails | Word::NotReproduced => Mood::Bad,
            Word::NotComparable | Word::NotRun | Word::NoDifference => Mood::Neutral,
            Word::CannotTell | Word::Invalid => Mood::Careful,
        }
    }

    /// A sign beside the word, so that colour is not the only difference.
    pub(crate) const fn sign(self) -> &'static str {
        match self.mood() {
            Mood::Good => "✓",
            Mood::Bad => "✗",
            Mood::Neutral => "–",
            Mood::Careful => "?",
        }
    }
}
