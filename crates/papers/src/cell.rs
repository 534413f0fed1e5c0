//! One measurement of one paper: what it is, what it needs, how long it takes, how it is made.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::world::World;

/// A paper, by its number in this project.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Paper {
    /// Sudiatmika et al. 2023.
    P1,
    /// Ramadhan & Wardhana 2021.
    P2,
    /// Ma & Chi 2022.
    P3,
    /// Usman et al. 2024.
    P4,
    /// Arifwidodo 2025.
    P5,
}

impl Paper {
    /// All of them.
    pub const ALL: [Paper; 5] = [Paper::P1, Paper::P2, Paper::P3, Paper::P4, Paper::P5];

    /// Authors, year and what they compare.
    pub fn title(self) -> &'static str {
        match self {
            Paper::P1 => {
                "Sudiatmika, Indrawan & Sariyasa 2023: round robin and IP hash in a government data centre"
            }
            Paper::P2 => "Ramadhan & Wardhana 2021: four algorithms on Citrix ADC VPX",
            Paper::P3 => "Ma & Chi 2022: algorithms of nginx, NEW_HASH and Keepalived",
            Paper::P4 => {
                "Usman, Nugroho & Asror 2024: layer-4 balancing on a programmable data plane"
            }
            Paper::P5 => "Arifwidodo 2025: weighted round robin over IPv6",
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::str::FromStr for Paper {
    type Err = String;

    fn from_str(text: &str) -> Result<Paper, String> {
        let found =
            Paper::ALL.into_iter().find(|paper| paper.to_string().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("there is no paper {text:?}: P1, P2, P3, P4, P5"))
    }
}

/// What a cell needs of the machine beside this program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// A network of its own, with the papers' addresses.
    Network,
    /// The web server, as a server or as a balancer.
    Nginx,
    /// As a balancer.
    Haproxy,
    /// ApacheBench.
    Ab,
    /// nghttp2's load generator.
    H2load,
    /// Grafana's load generator.
    K6,
    /// OpenSSL's command, as a client of old versions of TLS.
    Openssl,
    /// Control groups, by which a server has a part of a core.
    CpuLimit,
}

impl Need {
    /// The command that is looked for; none where it is a right.
    pub fn command(self) -> Option<&'static str> {
        match self {
            Need::Network | Need::CpuLimit => None,
            Need::Nginx => Some("nginx"),
            Need::Haproxy => Some("haproxy"),
            Need::Ab => Some("ab"),
            Need::H2load => Some("h2load"),
            Need::K6 => Some("k6"),
            Need::Openssl => Some("openssl"),
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Need::Network => {
                "a network namespace (root, or a kernel that lets users make one), and `unshare`, `ip`"
            }
            Need::Nginx => "nginx (apt install nginx)",
            Need::Haproxy => "HAProxy (apt install haproxy)",
            Need::Ab => "ab (apt install apache2-utils)",
            Need::H2load => "h2load (apt install nghttp2-client)",
            Need::K6 => "k6 (scripts/setup.sh papers builds it where Go is 1.25 or newer)",
            Need::Openssl => "openssl (apt install openssl)",
            Need::CpuLimit => "control groups with a cpu controller (root, or a delegated group)",
        }
    }
}

/// How large a run is made.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Scale(f64);

impl Scale {
    /// As the papers did it.
    pub const FULL: Scale = Scale(1.0);

    /// Of what a user writes: above 0, at most 1.
    pub fn new(factor: f64) -> Option<Scale> {
        (factor > 0.0 && factor <= 1.0).then_some(Scale(factor))
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// A length of time, at least a second.
    pub fn time(self, full: Duration) -> Duration {
        full.mul_f64(self.0).max(full.min(Duration::from_secs(1)))
    }

    /// Repetitions, at least one.
    pub fn repetitions(self, full: u32) -> u32 {
        ((f64::from(full) * self.0).round() as u32).max(1)
    }
}

/// What came out of a cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// By name; the unit ends the name.
    pub numbers: BTreeMap<String, f64>,
    /// Counts by name, one for each server, client or step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, Vec<u64>>,
    /// The commands of others that were run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What is worth saying beside the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why the numbers must not be used: the machine or the generator was the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

impl Measured {
    /// With one number more.
    #[must_use]
    pub fn number(mut self, name: impl Into<String>, value: f64) -> Measured {
        self.numbers.insert(name.into(), value);
        self
    }

    /// With some counts more.
    #[must_use]
    pub fn counts(mut self, name: impl Into<String>, values: Vec<u64>) -> Measured {
        self.counts.insert(name.into(), values);
        self
    }
}

/// How a cell is measured.
pub type Work = Box<dyn Fn(&World) -> Result<Measured, String>>;

/// One measurement.
pub struct Cell {
    /// `P2/subak/round_robin/12000#1`: the paper, what it is, the repetition.
    pub id: String,
    /// An estimate.
    pub takes: Duration,
    /// What must be there.
    pub needs: Vec<Need>,
    /// Makes it.
    pub work: Work,
}

impl Cell {
    /// The paper it belongs to.
    pub fn paper(&self) -> Option<Paper> {
        self.id.split('/').next()?.parse().ok()
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("id", &self.id).field("takes", &self.takes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Paper, Scale};
    use std::time::Duration;

    #[test]
    fn a_scale_shortens_time_and_repetitions_but_not_to_nothing() {
        let tenth = Scale::new(0.1).unwrap();
        assert_eq!(tenth.time(Duration::from_secs(600)), Duration::from_secs(60));
        assert_eq!(tenth.time(Duration::from_secs(5)), Duration::from_secs(1));
        assert_eq!(tenth.time(Duration::from_millis(10)), Duration::from_millis(10));
        assert_eq!((tenth.repetitions(30), tenth.repetitions(1)), (3, 1));
        assert_eq!(Scale::new(0.0), None);
        assert_eq!(Scale::new(1.5), None);
        assert_eq!(Scale::new(f64::NAN), None);
    }

    #[test]
    fn papers_are_named_in_either_case() {
        assert_eq!("p3".parse(), Ok(Paper::P3));
        assert!("P6".parse::<Paper>().is_err());
    }
}
