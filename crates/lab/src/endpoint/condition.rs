//! The condition of an endpoint, as `PUT /__condition?slow=8&lossy=0.1` or `?fault=reset` sets it.

/// The condition of an endpoint. Numbers are in thousandths, so that conditions can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Service time relative to the usual one; 1,000 is the usual one.
    pub slow: u32,
    /// Share of the answers that are replaced by a closed connection, when they are due.
    pub lossy: u32,
    /// Share of the requests that are answered 500 at once.
    pub failing: u32,
    /// A fault of every answer, when it is due.
    pub fault: Option<Fault>,
}

/// A fault that an endpoint shows instead of each answer. Requests are read whole before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The connection is reset (RST).
    Reset,
    /// The connection is closed (FIN).
    Close,
    /// Bytes that are not HTTP, then the end of the connection.
    Garbage,
    /// Nothing, until the condition changes; then the usual answer.
    Hang,
    /// The answer without its last byte, then the end of the connection.
    Truncate,
    /// A body of 64 KiB, a byte every 100 ms, until the condition changes; then the rest at once.
    Trickle,
}

impl Fault {
    const NAMES: [(&str, Fault); 6] = [
        ("reset", Fault::Reset),
        ("close", Fault::Close),
        ("garbage", Fault::Garbage),
        ("hang", Fault::Hang),
        ("truncate", Fault::Truncate),
        ("trickle", Fault::Trickle),
    ];

    fn read(text: &str) -> Option<Fault> {
        Fault::NAMES.into_iter().find_map(|(name, fault)| (name == text).then_some(fault))
    }

    fn name(self) -> &'static str {
        Fault::NAMES.into_iter().find_map(|(name, of)| (of == self).then_some(name)).unwrap_or("")
    }
}

impl Condition {
    /// Nothing is wrong.
    pub const WELL: Condition = Condition { slow: 1000, lossy: 0, failing: 0, fault: None };

    /// Reads the text behind the question mark; whatever it does not name is well. `None` for an
    /// unknown name or a value out of range.
    pub(super) fn read(query: &[u8]) -> Option<Condition> {
        let text = std::str::from_utf8(query).ok()?;
        let mut condition = Condition::WELL;
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            let (place, most) = match name {
                "slow" => (&mut condition.slow, 100_000.0),
                "lossy" => (&mut condition.lossy, 1.0),
                "failing" => (&mut condition.failing, 1.0),
                "fault" => {
                    condition.fault = Some(Fault::read(value)?);
                    continue;
                }
                _ => return None,
            };
            let value = value.parse::<f64>().ok().filter(|value| (0.0..=most).contains(value))?;
            *place = (value * 1000.0).round() as u32;
        }
        Some(condition)
    }

    /// The text that [`Condition::read`] reads.
    pub fn query(&self) -> String {
        let of = |per_mille: u32| f64::from(per_mille) / 1000.0;
        let (slow, lossy, failing) = (of(self.slow), of(self.lossy), of(self.failing));
        let fault = self.fault.map(|fault| format!("&fault={}", fault.name())).unwrap_or_default();
        format!("slow={slow}&lossy={lossy}&failing={failing}{fault}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        let condition = Condition { slow: 8500, lossy: 100, failing: 1, fault: None };
        assert_eq!(condition.query(), "slow=8.5&lossy=0.1&failing=0.001");
        assert_eq!(Condition::read(condition.query().as_bytes()), Some(condition));
        assert_eq!(Condition::read(b""), Some(Condition::WELL));
        for (name, fault) in Fault::NAMES {
            let ill = Condition { fault: Some(fault), ..Condition::WELL };
            assert_eq!(Condition::read(ill.query().as_bytes()), Some(ill));
            assert_eq!(Condition::read(format!("fault={name}").as_bytes()), Some(ill));
        }
        for wrong in ["slow", "slow=x", "slow=-1", "lossy=2", "dead=1", "failing=NaN", "fault=x"] {
            assert_eq!(Condition::read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
