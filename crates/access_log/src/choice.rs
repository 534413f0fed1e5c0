//! Which requests get a line?

use subak_telemetry::Cause;

/// How a request ended, for choosing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// By the first digit of its status, 1 to 5.
    Status(u8),
    /// It was not served, or not to its end, whatever the status.
    Failure,
}

/// Some classes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Classes(u8);

impl Classes {
    /// Adds one.
    pub fn insert(&mut self, class: Class) {
        self.0 |= bit(class);
    }

    fn has_any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// A class by its name: `5xx`, `failure`.
impl std::str::FromStr for Class {
    type Err = ();

    fn from_str(name: &str) -> Result<Class, ()> {
        match name.as_bytes() {
            b"failure" => Ok(Class::Failure),
            [digit @ b'1'..=b'5', b'x', b'x'] => Ok(Class::Status(digit - b'0')),
            _ => Err(()),
        }
    }
}

/// Which requests are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Only these; none: all.
    pub only: Option<Classes>,
    /// Of those a share, in parts per million,
    pub sample_ppm: u32,
    /// but all of these.
    pub always: Classes,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { only: None, sample_ppm: 1_000_000, always: Classes::default() }
    }
}

impl Choice {
    /// Whether a request that ended so gets a line; `random` decides for samples.
    #[inline]
    pub fn takes(&self, status: u16, failure: Option<Cause>, random: impl FnOnce() -> u64) -> bool {
        if *self == Choice::default() {
            return true;
        }
        let bits = bit(Class::Status((status / 100) as u8))
            | if failure.is_some() { bit(Class::Failure) } else { 0 };
        if self.only.is_some_and(|only| !only.has_any(bits)) {
            return false;
        }
        let sampled = || ((random() >> 32) * 1_000_000) >> 32 < u64::from(self.sample_ppm);
        self.always.has_any(bits) || self.sample_ppm >= 1_000_000 || sampled()
    }
}

fn bit(class: Class) -> u8 {
    match class {
        Class::Status(digit @ 1..=5) => 1 << digit,
        Class::Status(_) => 0,
        Class::Failure => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(names: &[&str]) -> Classes {
        let mut classes = Classes::default();
        names.iter().for_each(|name| classes.insert(name.parse().unwrap()));
        classes
    }

    #[test]
    fn a_sample_is_a_share_and_what_is_always_taken_always_is() {
        let choice = Choice {
            sample_ppm: 100_000,
            always: classes(&["5xx", "failure"]),
            ..Choice::default()
        };
        let mut random = subak_base::Rng::new(1);
        let taken = (0..100_000).filter(|_| choice.takes(200, None, || random.next_u64())).count();
        assert!((9_500..10_500).contains(&taken), "{taken}");
        assert!(choice.takes(503, None, || u64::MAX));
        assert!(choice.takes(200, Some(Cause::Broken), || u64::MAX));
        assert!(choice.takes(0, Some(Cause::ClientGone), || u64::MAX));
        assert!(!choice.takes(404, None, || u64::MAX));
        assert!(!Choice { sample_ppm: 0, ..Choice::default() }.takes(200, None, || 0));
    }

    #[test]
    fn only_what_is_asked_for_is_taken() {
        let choice = Choice { only: Some(classes(&["4xx", "failure"])), ..Choice::default() };
        let taken = |status, failure| choice.takes(status, failure, || 0);
        assert!(taken(404, None) && taken(0, Some(Cause::ClientGone)));
        assert!(!taken(200, None) && !taken(503, None));
        assert!("6xx".parse::<Class>().is_err() && "5XX".parse::<Class>().is_err());
    }
}
