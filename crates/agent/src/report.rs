//! The report: what an agent says of its endpoint, as a value and as a JSON document.
//!
//! ```json
//! {
//!   "version": 1,
//!   "age_ms": 412,
//!   "window_ms": 3000,
//!   "cpu": { "capacity_millicpus": 2000, "use_ppm": 374000 },
//!   "memory": { "capacity_bytes": 25276502016, "use_ppm": 21000 },
//!   "disk": { "capacity_bytes_per_second": null, "use_ppm": 1200 },
//!   "network": { "capacity_bits_per_second": 1000000000, "use_ppm": 2100 }
//! }
//! ```
//!
//! Whole numbers, units in the names. What is not known is `null` or left out. Whatever is not as
//! described is refused, so that two versions never understand the same document differently: a
//! field more is a version more.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use subak_balance::weigher::{self, PerResource, Ppm, Resource};
use subak_base::Tick;

use crate::fetch::MAX_REPORT_BYTES;
use crate::measure::Sample;

/// The version of the document that is written and read here.
pub const VERSION: u32 = 1;
/// Where an agent has it.
pub const REPORT_PATH: &str = "/v1/report";

/// What an endpoint has, and how much of it is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// How long ago it was measured when it was written down.
    pub age: Duration,
    /// The time that shares and rates were taken over.
    pub window: Duration,
    /// CPU in thousandths of a processor, memory in bytes, disk in bytes a second, network in bits a
    /// second; never 0.
    pub capacity: PerResource<Option<u64>>,
    /// The share of it that is in use.
    pub used: PerResource<Option<Ppm>>,
}

impl Report {
    /// A sample as it is `now`.
    pub fn of(sample: &Sample, now: std::time::Instant) -> Report {
        Report {
            age: now.saturating_duration_since(sample.at),
            window: sample.window,
            capacity: sample.capacity.map(|_, capacity| capacity.filter(|capacity| *capacity > 0)),
            used: sample.used,
        }
    }

    /// The same for the weigher of whoever has received it at this moment of its own clock.
    pub fn received(&self, now: Tick) -> weigher::Report {
        let age = u64::try_from(self.age.as_nanos()).unwrap_or(u64::MAX);
        let at = Tick(now.0.saturating_sub(age));
        weigher::Report { at, capacity: self.capacity, used: self.used }
    }

    /// The document, on one line.
    pub fn to_json(&self) -> String {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let use_ppm = |resource| self.used.get(resource).map(Ppm::get);
        let Report { capacity, .. } = *self;
        let document = Document {
            version: VERSION,
            age_ms: millis(self.age),
            window_ms: millis(self.window),
            cpu: Some(Cpu { capacity_millicpus: capacity.cpu, use_ppm: use_ppm(Resource::Cpu) }),
            memory: Some(Memory {
                capacity_bytes: capacity.memory,
                use_ppm: use_ppm(Resource::Memory),
            }),
            disk: Some(Disk {
                capacity_bytes_per_second: capacity.disk,
                use_ppm: use_ppm(Resource::Disk),
            }),
            network: Some(Network {
                capacity_bits_per_second: capacity.network,
                use_ppm: use_ppm(Resource::Network),
            }),
        };
        // Numbers and fixed names: there is nothing that could fail.
        serde_json::to_string(&document).unwrap_or_default()
    }
}

/// Reads a document.
///
/// # Errors
/// [`ReportError`]: too long, another version, or not as described, with the place.
pub fn parse_report(document: &[u8]) -> Result<Report, ReportError> {
    if document.len() > MAX_REPORT_BYTES {
        return Err(ReportError::TooLong { bytes: document.len() });
    }
    let AnyVersion { version } = serde_json::from_slice(document).map_err(ReportError::Json)?;
    if version != u64::from(VERSION) {
        return Err(ReportError::Version { found: version });
    }
    let document: Document = serde_json::from_slice(document).map_err(ReportError::Json)?;
    let Document { age_ms, window_ms, cpu, memory, disk, network, .. } = document;
    let stated = PerResource {
        cpu: cpu.map(|cpu| (cpu.capacity_millicpus, cpu.use_ppm)),
        memory: memory.map(|memory| (memory.capacity_bytes, memory.use_ppm)),
        disk: disk.map(|disk| (disk.capacity_bytes_per_second, disk.use_ppm)),
        network: network.map(|network| (network.capacity_bits_per_second, network.use_ppm)),
    };
    let mut report = Report {
        age: Duration::from_millis(age_ms),
        window: Duration::from_millis(window_ms),
        capacity: PerResource::default(),
        used: PerResource::default(),
    };
    for (resource, stated) in stated.iter() {
        let Some((capacity, use_ppm)) = *stated else { continue };
        if capacity == Some(0) {
            return Err(ReportError::NoCapacity { resource });
        }
        *report.capacity.get_mut(resource) = capacity;
        if let Some(use_ppm) = use_ppm {
            let used = Ppm::new(use_ppm).ok_or(ReportError::Use { resource, use_ppm })?;
            *report.used.get_mut(resource) = Some(used);
        }
    }
    Ok(report)
}

/// Why a document is no report.
#[derive(Debug)]
pub enum ReportError {
    /// It is longer than any report.
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// It is of a version that is not understood here.
    Version {
        /// Its version.
        found: u64,
    },
    /// It is no JSON, or has other fields than a report, or values of another kind.
    Json(serde_json::Error),
    /// More than all of a resource is in use.
    Use {
        /// Of what.
        resource: Resource,
        /// The share in the document.
        use_ppm: u32,
    },
    /// There is none of a resource; what is not known is `null`.
    NoCapacity {
        /// Of what.
        resource: Resource,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportError::TooLong { bytes } => {
                write!(out, "a report has at most {MAX_REPORT_BYTES} bytes, this one {bytes}")
            }
            ReportError::Version { found } => write!(
                out,
                "the report is of version {found}, and only {VERSION} is understood here; run the \
                 same version of Subak on both sides"
            ),
            ReportError::Json(error) => write!(out, "not a report: {error}"),
            ReportError::Use { resource, use_ppm } => {
                write!(out, "{}: use_ppm is {use_ppm}, above 1000000", resource.name())
            }
            ReportError::NoCapacity { resource } => {
                write!(
                    out,
                    "{}: the capacity is 0; null says that it is not known",
                    resource.name()
                )
            }
        }
    }
}

impl Error for ReportError {}

#[derive(Deserialize)]
struct AnyVersion {
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    age_ms: u64,
    window_ms: u64,
    cpu: Option<Cpu>,
    memory: Option<Memory>,
    disk: Option<Disk>,
    network: Option<Network>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cpu {
    capacity_millicpus: Option<u64>,
    use_ppm: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    capacity_bytes: Option<u64>,
    use_ppm: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    capacity_bytes_per_second: Option<u64>,
    use_ppm: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    capacity_bits_per_second: Option<u64>,
    use_ppm: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOCUMENT: &str = concat!(
        r#"{"version":1,"age_ms":412,"window_ms":3000,"#,
        r#""cpu":{"capacity_millicpus":2000,"use_ppm":374000},"#,
        r#""memory":{"capacity_bytes":25276502016,"use_ppm":21000},"#,
        r#""disk":{"capacity_bytes_per_second":null,"use_ppm":1200},"#,
        r#""network":{"capacity_bits_per_second":1000000000,"use_ppm":null}}"#
    );

    fn report() -> Report {
        let ppm = |parts| Ppm::new(parts);
        Report {
            age: Duration::from_millis(412),
            window: Duration::from_secs(3),
            capacity: PerResource {
                cpu: Some(2000),
                memory: Some(25_276_502_016),
                disk: None,
                network: Some(1_000_000_000),
            },
            used: PerResource {
                cpu: ppm(374_000),
                memory: ppm(21_000),
                disk: ppm(1200),
                network: None,
            },
        }
    }

    #[test]
    fn the_document_is_the_one_that_is_documented() {
        assert_eq!(report().to_json(), DOCUMENT);
        assert_eq!(parse_report(DOCUMENT.as_bytes()).unwrap(), report());
        let nothing =
            parse_report(br#" {"version":1,"age_ms":0,"window_ms":0,"cpu":null,"disk":{}} "#);
        let nothing = nothing.unwrap();
        assert_eq!((nothing.capacity, nothing.used), Default::default());
    }

    #[test]
    fn the_moment_of_a_report_is_that_of_its_measurement() {
        assert_eq!(report().received(Tick::from_millis(1000)).at, Tick::from_millis(588));
        let ancient = Report { age: Duration::MAX, ..report() };
        assert_eq!(ancient.received(Tick::from_millis(1000)).at, Tick(0));
    }

    #[test]
    fn what_is_not_as_described_is_refused_and_the_place_is_named() {
        for (from, to, says) in [
            (r#""version":1,"#, "", "missing field `version`"),
            (r#""version":1"#, r#""version":2"#, "version 2, and only 1"),
            (r#""version":1"#, r#""version":-1"#, "-1"),
            (r#""version":1"#, r#""version":1,"version":1"#, "duplicate field `version`"),
            (r#""age_ms":412,"#, "", "missing field `age_ms`"),
            (r#""age_ms":412"#, r#""age_ms":4.5"#, "4.5"),
            (r#""age_ms":412"#, r#""age_ms":99999999999999999999"#, "not a report"),
            (r#""use_ppm":374000"#, r#""use_ppm":1000001"#, "cpu: use_ppm is 1000001"),
            (r#""use_ppm":374000"#, r#""use_ppm":"374000""#, "invalid type"),
            (r#""use_ppm":374000"#, r#""use_ppm":374000,"steal_ppm":1"#, "steal_ppm"),
            (
                r#""capacity_bytes":25276502016"#,
                r#""capacity_bytes":0"#,
                "memory: the capacity is 0",
            ),
            (r#""capacity_millicpus""#, r#""capacity_cpus""#, "capacity_cpus"),
            (r#""disk""#, r#""disc""#, "disc"),
            (r#"null}}"#, r#"null}"#, "EOF"),
            (r#"null}}"#, r#"null}}{}"#, "trailing"),
        ] {
            assert_eq!(DOCUMENT.matches(from).count(), 1, "{from}");
            let document = DOCUMENT.replace(from, to);
            let error = parse_report(document.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{to}: {error}");
        }
        for document in ["", "null", "[]", "{}", "7", "\u{feff}{}", &"[".repeat(60_000)] {
            assert!(parse_report(document.as_bytes()).is_err(), "{document}");
        }
        let long = format!("{DOCUMENT}{}", " ".repeat(MAX_REPORT_BYTES));
        assert!(matches!(parse_report(long.as_bytes()), Err(ReportError::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            times in prop::array::uniform2(0..u64::MAX / 2),
            capacity in prop::array::uniform4(prop::option::of(1..=u64::MAX)),
            used in prop::array::uniform4(prop::option::of((0..=1_000_000_u32).prop_map(Ppm::new))),
        ) {
            let [cpu, memory, disk, network] = capacity;
            let capacity = PerResource { cpu, memory, disk, network };
            let [cpu, memory, disk, network] = used.map(Option::flatten);
            let used = PerResource { cpu, memory, disk, network };
            let [age, window] = times.map(Duration::from_millis);
            let report = Report { age, window, capacity, used };
            prop_assert_eq!(parse_report(report.to_json().as_bytes()).unwrap(), report);
        }

        #[test]
        fn no_bytes_panic(
            noise in prop::collection::vec(any::<u8>(), 0..200),
            at in 0..DOCUMENT.len(),
            byte in any::<u8>(),
        ) {
            let _ = parse_report(&noise);
            let mut bent = DOCUMENT.as_bytes().to_vec();
            bent[at] = byte;
            if let Ok(report) = parse_report(&bent) {
                prop_assert_eq!(parse_report(report.to_json().as_bytes()).unwrap(), report);
            }
            prop_assert!(parse_report(&DOCUMENT.as_bytes()[..at]).is_err());
        }
    }
}
