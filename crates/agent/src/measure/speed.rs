//! How fast a disk or an interface is, as a person states it.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// A rate of transfer. Written `1Gbit/s` or `500MB/s`; units count by 1000, a byte has 8 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Speed {
    bits_per_second: u64,
}

impl Speed {
    /// None for zero.
    pub const fn from_bits_per_second(bits_per_second: u64) -> Option<Speed> {
        if bits_per_second > 0 { Some(Speed { bits_per_second }) } else { None }
    }

    /// Bits a second.
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// Whole bytes a second, at least one.
    pub const fn bytes_per_second(self) -> u64 {
        if self.bits_per_second < 8 { 1 } else { self.bits_per_second / 8 }
    }
}

/// A text that is no speed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpeedError;

impl fmt::Display for SpeedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("expected a speed such as 1Gbit/s, 100Mbit/s or 500MB/s")
    }
}

impl Error for SpeedError {}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Speed, SpeedError> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let bits: u64 = match unit {
            "kbit/s" => 1_000,
            "Mbit/s" => 1_000_000,
            "Gbit/s" => 1_000_000_000,
            "kB/s" => 8_000,
            "MB/s" => 8_000_000,
            "GB/s" => 8_000_000_000,
            _ => return Err(SpeedError),
        };
        let bits = number.parse::<u64>().ok().and_then(|number| number.checked_mul(bits));
        bits.and_then(Speed::from_bits_per_second).ok_or(SpeedError)
    }
}

#[cfg(test)]
mod tests {
    use super::Speed;

    #[test]
    fn units_count_by_1000_and_bytes_have_8_bits() {
        for (text, bits) in [
            ("1Gbit/s", 1_000_000_000),
            ("100Mbit/s", 100_000_000),
            ("64kbit/s", 64_000),
            ("500MB/s", 4_000_000_000),
            ("3GB/s", 24_000_000_000),
            ("1kB/s", 8_000),
        ] {
            assert_eq!(text.parse().map(Speed::bits_per_second), Ok(bits), "{text}");
        }
        assert_eq!("500MB/s".parse().map(Speed::bytes_per_second), Ok(500_000_000));
        for text in [
            "",
            "1",
            "Gbit/s",
            "0Gbit/s",
            "1gbit/s",
            "1Gbit",
            "1.5Gbit/s",
            "-1MB/s",
            "99999999999GB/s",
        ] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }
}
