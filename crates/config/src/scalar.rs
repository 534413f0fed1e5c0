//! Durations and sizes: a number and a unit.

use std::time::Duration;

use crate::defaults::{MAX_TIME, MIN_TIME};
use crate::problem::Problem;

/// What a duration has to look like.
pub(crate) const DURATION: &str = "a duration such as \"10s\", \"250ms\" or \"1m30s\"";
/// [`DURATION`] as a regular expression (ECMA-262).
pub(crate) const DURATION_PATTERN: &str = "^([0-9]+(ms|s|m|h|d))+$";
/// What a size has to look like.
pub(crate) const SIZE: &str = "a size such as \"64KiB\", \"64k\" or 65536";
/// [`SIZE`] as a regular expression (ECMA-262).
pub(crate) const SIZE_PATTERN: &str = "^[0-9]+([bB]|[kKmMgG]([iI][bB])?)?$";

/// One or more numbers with the units ms, s, m, h, d, the largest unit first; within the range of
/// what time limits can be.
pub(crate) fn duration(text: &str) -> Result<Duration, Problem> {
    let total = any_duration(text)?;
    if !(MIN_TIME..=MAX_TIME).contains(&total) {
        let range = format!("expected {} to {}", show_duration(MIN_TIME), show_duration(MAX_TIME));
        return Err(Problem::expected("this duration is out of range", range));
    }
    Ok(total)
}

/// A duration of any length, zero included.
pub(crate) fn any_duration(text: &str) -> Result<Duration, Problem> {
    let malformed = || Problem::expected("this is no duration", format!("expected {DURATION}"));
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed().help(format!("give it a unit: \"{text}s\" or \"{text}ms\"")));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    let mut previous = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let letters = rest[digits..].bytes().take_while(u8::is_ascii_lowercase).count();
        let unit: u64 = match &rest[digits..digits + letters] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(malformed()),
        };
        if digits == 0 || unit >= previous {
            return Err(malformed());
        }
        let milliseconds =
            rest[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        total = milliseconds
            .and_then(|milliseconds| total.checked_add(Duration::from_millis(milliseconds)))
            .unwrap_or(Duration::MAX);
        previous = unit;
        rest = &rest[digits + letters..];
    }
    if text.is_empty() {
        return Err(malformed());
    }
    Ok(total)
}

/// A duration in its shortest form.
pub(crate) fn show_duration(duration: Duration) -> String {
    let mut left = duration.as_millis();
    let mut out = String::new();
    for (unit, milliseconds) in
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)]
    {
        if left >= milliseconds {
            out.push_str(&format!("{}{unit}", left / milliseconds));
            left %= milliseconds;
        }
    }
    if out.is_empty() { "0s".to_string() } else { out }
}

/// Milliseconds as a duration in its shortest form.
pub(crate) fn show_ms(milliseconds: u64) -> String {
    show_duration(Duration::from_millis(milliseconds))
}

/// Thousandths as a decimal: `0.5`, `3`.
pub(crate) fn show_per_mille(thousandths: u32) -> String {
    (f64::from(thousandths) / 1000.0).to_string()
}

/// A number of bytes with an optional unit: B, or k, m, g with or without iB, each 1024 times the
/// one before. `kB` and its like mean 1000 to some and 1024 to others and are refused.
pub(crate) fn size(text: &str) -> Result<u64, Problem> {
    let malformed = || Problem::expected("this is no size", format!("expected {SIZE}"));
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if digits == 0 {
        return Err(malformed());
    }
    let factor: u64 = match &*unit.to_ascii_lowercase() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" | "mb" | "gb" => {
            let unit = unit[..1].to_ascii_uppercase();
            return Err(malformed().help(format!("units count by 1024 here: \"{number}{unit}iB\"")));
        }
        _ => return Err(malformed()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    Ok(bytes.unwrap_or(u64::MAX))
}

/// A size in the largest unit that holds it exactly.
pub(crate) fn show_size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_string(),
        whole if whole % (1 << 30) == 0 => format!("{}GiB", whole >> 30),
        whole if whole % (1 << 20) == 0 => format!("{}MiB", whole >> 20),
        whole if whole % (1 << 10) == 0 => format!("{}KiB", whole >> 10),
        other => format!("{other}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, show_duration, show_size, size};

    #[test]
    fn reads_durations() {
        for (text, milliseconds) in [
            ("1ms", 1),
            ("250ms", 250),
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("1h0m1s5ms", 3_601_005),
        ] {
            assert_eq!(duration(text).ok(), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in [
            "",
            "s",
            "10",
            "1.5s",
            "1 s",
            "-1s",
            "+1s",
            "10S",
            "10us",
            "1s1s",
            "1s1m",
            "1x",
            "1s2",
            "0s",
            "8d",
            "999999999999999999999s",
            "18446744073709551615d",
            "十s",
            "1s ",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shows_durations_so_that_they_read_back() {
        for milliseconds in [1, 999, 1000, 1500, 90_000, 86_400_000, 90_061_001] {
            let value = Duration::from_millis(milliseconds);
            assert_eq!(duration(&show_duration(value)).ok(), Some(value));
        }
    }

    #[test]
    fn reads_sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17B", 17),
            ("64k", 65_536),
            ("64K", 65_536),
            ("64KiB", 65_536),
            ("16MiB", 16 << 20),
            ("1g", 1 << 30),
            ("99999999999999999999g", u64::MAX),
        ] {
            assert_eq!(size(text).ok(), Some(bytes), "{text}");
            if bytes < u64::MAX {
                assert_eq!(size(&show_size(bytes)).ok(), Some(bytes), "{text}");
            }
        }
        for text in ["", "k", "1.5k", "-1", "1 k", "64kB", "64MB", "1t", "1kb", "0x10", "1_000"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
