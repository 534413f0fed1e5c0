//! Options of algorithms: what each may be set to, in one form that the configuration, its schema
//! and the documentation read.

use std::error::Error;
use std::fmt;
use std::ops::Range;

/// An option of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The name.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// What it may be set to.
    pub kind: OptionKind,
    /// What holds when it is not set; none for an option that is off then.
    pub default: Option<OptionValue<'static>>,
}

/// What an option may be set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionKind {
    /// One of these words.
    Words(&'static [&'static str]),
    /// A whole number in this range, both ends included.
    Integer {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// A number in this range, both ends included, in thousandths.
    Decimal {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// A text with a grammar of its own.
    Text {
        /// Its forms, capitals standing for what is free.
        forms: &'static [&'static str],
        /// A regular expression (ECMA-262) that all of them fit.
        pattern: &'static str,
    },
}

/// A value for an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionValue<'a> {
    /// A word or a text.
    Text(&'a str),
    /// A whole number.
    Integer(u32),
    /// A number in thousandths.
    Thousandths(u32),
}

impl<'a> From<&'a str> for OptionValue<'a> {
    fn from(text: &'a str) -> OptionValue<'a> {
        OptionValue::Text(text)
    }
}

/// As the configuration writes it.
impl fmt::Display for OptionValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Text(text) => write!(f, "\"{text}\""),
            OptionValue::Integer(number) => number.fmt(f),
            OptionValue::Thousandths(number) => decimal(*number).fmt(f),
        }
    }
}

/// What is expected, as a message says it: `"smooth" or "burst"`, `an integer from 2 to 8`.
impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            words.join(" or ")
        };
        match self {
            OptionKind::Words(words) => f.write_str(&quoted(words)),
            OptionKind::Integer { min, max } => write!(f, "an integer from {min} to {max}"),
            OptionKind::Decimal { min, max } => {
                write!(f, "a number from {} to {}", decimal(*min), decimal(*max))
            }
            OptionKind::Text { forms, .. } => f.write_str(&quoted(forms)),
        }
    }
}

/// Thousandths as a decimal number without needless zeros: 1250 is `1.25`, 2000 is `2.0`.
fn decimal(thousandths: u32) -> String {
    let digits = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    let short = digits.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// An option that could not be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionError {
    /// The algorithm has no option of this name.
    Unknown {
        /// The name given.
        name: String,
    },
    /// The option cannot have this value.
    Value {
        /// The option's name.
        name: &'static str,
        /// The value given, as the configuration writes it.
        value: String,
        /// What it may be.
        kind: OptionKind,
        /// For a text with a grammar: what is wrong with it, and where.
        problem: Option<TextProblem>,
    },
    /// The option can have this value, but not together with the others.
    Conflict {
        /// The option's name.
        name: &'static str,
        /// Why not, and what to do.
        because: &'static str,
    },
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextProblem {
    /// In a few words.
    pub message: &'static str,
    /// The bytes it is about.
    pub at: Range<usize>,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown { name } => write!(f, "there is no option {name}"),
            OptionError::Value { name, value, kind, problem } => {
                write!(f, "{name} cannot be {value}; it is {kind}")?;
                problem.iter().try_for_each(|problem| write!(f, " ({})", problem.message))
            }
            OptionError::Conflict { name, because } => write!(f, "{name}: {because}"),
        }
    }
}

impl Error for OptionError {}

/// A type that an option's value becomes.
pub(crate) trait Setting: Sized + Default {
    const SUMMARY: &'static str;
    const KIND: OptionKind;
    /// The same as `Self::default()`; none for an option that is off unless it is set.
    const DEFAULT: Option<OptionValue<'static>>;

    /// The value of a word or a text.
    fn from_text(_text: &str) -> Result<Self, Option<TextProblem>> {
        Err(None)
    }

    /// The value of a number that is within the range, in thousandths for decimals.
    fn from_number(_number: u32) -> Option<Self> {
        None
    }
}

/// The setting that a value becomes, or why it cannot.
pub(crate) fn read<T: Setting>(
    name: &'static str,
    value: OptionValue<'_>,
) -> Result<T, OptionError> {
    let read = match (T::KIND, value) {
        (OptionKind::Words(_) | OptionKind::Text { .. }, OptionValue::Text(text)) => {
            T::from_text(text)
        }
        (OptionKind::Integer { min, max }, OptionValue::Integer(number))
        | (OptionKind::Decimal { min, max }, OptionValue::Thousandths(number))
            if (min..=max).contains(&number) =>
        {
            T::from_number(number).ok_or(None)
        }
        _ => Err(None),
    };
    let refused = |problem| {
        let value = value.to_string();
        OptionError::Value { name, value, kind: T::KIND, problem }
    };
    read.map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::{OptionKind, OptionValue};

    #[test]
    fn values_are_shown_as_they_are_written() {
        let shown = |value: OptionValue<'_>| value.to_string();
        assert_eq!(shown(OptionValue::Text("burst")), "\"burst\"");
        assert_eq!(shown(OptionValue::Integer(3)), "3");
        for (thousandths, text) in
            [(1250, "1.25"), (2000, "2.0"), (1010, "1.01"), (1, "0.001"), (10_000, "10.0")]
        {
            assert_eq!(shown(OptionValue::Thousandths(thousandths)), text);
        }
        let range = OptionKind::Decimal { min: 1010, max: 10_000 };
        assert_eq!(range.to_string(), "a number from 1.01 to 10.0");
    }
}
