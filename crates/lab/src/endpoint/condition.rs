//! What is wrong with an endpoint now, as it is told by `PUT /__condition?slow=8&lossy=0.1`.

/// In thousandths, so that conditions can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Of the usual service time; 1,000 is as usual.
    pub slow: u32,
    /// Of the answers: the connection is closed instead, when they are due.
    pub lossy: u32,
    /// Of the requests: answered 500 at once.
    pub failing: u32,
}

impl Condition {
    /// Nothing is wrong.
    pub const WELL: Condition = Condition { slow: 1000, lossy: 0, failing: 0 };

    /// What stands behind the question mark; what it does not name is well. None: it makes no sense.
    pub(super) fn read(query: &[u8]) -> Option<Condition> {
        let text = std::str::from_utf8(query).ok()?;
        let mut condition = Condition::WELL;
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            let (place, most) = match name {
                "slow" => (&mut condition.slow, 100_000.0),
                "lossy" => (&mut condition.lossy, 1.0),
                "failing" => (&mut condition.failing, 1.0),
                _ => return None,
            };
            let value = value.parse::<f64>().ok().filter(|value| (0.0..=most).contains(value))?;
            *place = (value * 1000.0).round() as u32;
        }
        Some(condition)
    }

    /// As [`Condition::read`] reads it.
    pub fn query(&self) -> String {
        let of = |per_mille: u32| f64::from(per_mille) / 1000.0;
        let (slow, lossy, failing) = (of(self.slow), of(self.lossy), of(self.failing));
        format!("slow={slow}&lossy={lossy}&failing={failing}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        let condition = Condition { slow: 8500, lossy: 100, failing: 1 };
        assert_eq!(condition.query(), "slow=8.5&lossy=0.1&failing=0.001");
        assert_eq!(Condition::read(condition.query().as_bytes()), Some(condition));
        assert_eq!(Condition::read(b""), Some(Condition::WELL));
        for wrong in ["slow", "slow=x", "slow=-1", "lossy=2", "dead=1", "failing=NaN"] {
            assert_eq!(Condition::read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
