//! Reads the kernel's files again and again, and keeps what was read for as long as it counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use subak_balance::weigher::{PerResource, Ppm};

use super::cgroup::Cgroup;
use super::cpu::parse_stat;
use super::disk::{Disk, parse_diskstats};
use super::files::{Roots, read, read_number};
use super::memory::{Memory, parse_meminfo};
use super::network::{default_routes_v4, default_routes_v6, parse_dev};
use super::reading::{Cpu, Interface, Reading};
use super::speed::Speed;
use super::{MeasureError, Options};

/// Readings that are kept at most, however long the window and short the interval.
const MAX_READINGS: usize = 600;
/// After so many readings it is looked again which disks and interfaces there are: asking a driver
/// for its speed takes a lock that changing addresses takes too.
const LOOK_AGAIN: u32 = 60;

/// What was measured, as of a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When the last reading was taken.
    pub at: Instant,
    /// The time that shares and rates were taken over.
    pub window: Duration,
    /// Millicpus, bytes, bytes a second, bits a second.
    pub capacity: PerResource<Option<u64>>,
    /// The share of each that is in use.
    pub used: PerResource<Option<Ppm>>,
}

/// Measures one machine, or one control group on it.
#[derive(Debug)]
pub struct Sampler {
    options: Options,
    roots: Roots,
    cgroup: Cgroup,
    disks: Vec<String>,
    interfaces: Vec<(String, Option<Speed>)>,
    /// The oldest first; never empty.
    readings: VecDeque<Reading>,
    until_look: u32,
}

impl Sampler {
    /// Looks for what is to be measured and takes a first reading.
    ///
    /// # Errors
    /// [`MeasureError`] when something that was asked for by name is not there, or there is no CPU.
    pub fn new(options: Options, roots: Roots) -> Result<Sampler, MeasureError> {
        let cgroup = Cgroup::new(&roots, &options.cgroup);
        if options.cgroup.components().count() > 1 && !cgroup.path().is_dir() {
            let path = cgroup.path().to_owned();
            return Err(MeasureError::NoCgroup { name: options.cgroup, path });
        }
        let mut sampler = Sampler {
            options,
            roots,
            cgroup,
            disks: Vec::new(),
            interfaces: Vec::new(),
            readings: VecDeque::new(),
            until_look: LOOK_AGAIN,
        };
        sampler.expect_names()?;
        sampler.look();
        let first = sampler.read();
        if first.cpu.is_none() {
            return Err(MeasureError::NoCpu { stat: sampler.roots.proc.join("stat") });
        }
        sampler.readings.push_back(first);
        Ok(sampler)
    }

    /// Takes another reading and compares it with the newest that is a window older, or with the
    /// oldest there is.
    pub fn sample(&mut self) -> Sample {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK_AGAIN;
            self.look();
        }
        let last = self.read();
        let is_window_older = |reading: &Reading| {
            last.at.saturating_duration_since(reading.at) >= self.options.window
        };
        while self.readings.get(1).is_some_and(is_window_older)
            || self.readings.len() >= MAX_READINGS
        {
            self.readings.pop_front();
        }
        let first = self.readings.front().unwrap_or(&last);
        let mut capacity = last.capacity();
        capacity.disk = self.options.disk_speed.map(Speed::bytes_per_second);
        let sample = Sample {
            at: last.at,
            window: last.at.saturating_duration_since(first.at),
            capacity,
            used: last.used_since(first),
        };
        self.readings.push_back(last);
        sample
    }

    /// The interfaces that do not count because nothing says how fast they are.
    pub fn interfaces_without_speed(&self) -> impl Iterator<Item = &str> {
        let unknown = self.interfaces.iter().filter(|(_, speed)| speed.is_none());
        unknown.map(|(name, _)| name.as_str())
    }

    fn proc(&self, name: &str) -> String {
        read(&self.roots.proc.join(name)).unwrap_or_default()
    }

    /// What was asked for by name has to be there, at the beginning at least.
    fn expect_names(&self) -> Result<(), MeasureError> {
        let disks: Vec<_> = self.all_disks().into_iter().map(|disk| disk.name).collect();
        if let Some(name) = self.options.disks.iter().find(|name| !disks.contains(name)) {
            return Err(MeasureError::NoDisk { name: name.clone(), known: disks });
        }
        let known: Vec<_> = parse_dev(&self.proc("net/dev")).map(|traffic| traffic.name).collect();
        if let Some(name) = self.options.interfaces.iter().find(|name| !known.contains(name)) {
            return Err(MeasureError::NoInterface { name: name.clone(), known });
        }
        Ok(())
    }

    /// Finds out which disks and interfaces count now.
    fn look(&mut self) {
        self.disks = if self.options.disks.is_empty() {
            let whole = self.all_disks().into_iter().filter(|disk| self.is_device(&disk.name));
            whole.map(|disk| disk.name).collect()
        } else {
            self.options.disks.clone()
        };
        let names = if self.options.interfaces.is_empty() {
            let (v4, v6) = (self.proc("net/route"), self.proc("net/ipv6_route"));
            let routes = default_routes_v4(&v4).chain(default_routes_v6(&v6));
            let mut names: Vec<_> = routes.map(str::to_owned).collect();
            names.sort_unstable();
            names.dedup();
            names
        } else {
            self.options.interfaces.clone()
        };
        let speed = |name: String| {
            let speed = self.options.network_speed.or_else(|| self.speed_of(&name));
            (name, speed)
        };
        self.interfaces = names.into_iter().map(speed).collect();
    }

    fn all_disks(&self) -> Vec<Disk> {
        parse_diskstats(&self.proc("diskstats")).collect()
    }

    /// Whether a disk is one, and not a part of one or made of others.
    fn is_device(&self, disk: &str) -> bool {
        let name = disk.replace('/', "!");
        self.roots.sys.join("block").join(name).join("device").exists()
    }

    /// What the driver says, in megabits a second; -1 or an error where it has nothing to say.
    fn speed_of(&self, interface: &str) -> Option<Speed> {
        let path = self.roots.sys.join("class/net").join(interface).join("speed");
        Speed::from_bits_per_second(read_number(&path)?.checked_mul(1_000_000)?)
    }

    fn read(&self) -> Reading {
        let times = parse_stat(&self.proc("stat")).map(Cpu::Machine);
        let counts = |disk: &Disk| self.disks.contains(&disk.name);
        let traffic = self.proc("net/dev");
        let interfaces = parse_dev(&traffic).filter_map(|traffic| {
            let (_, speed) = self.interfaces.iter().find(|(name, _)| *name == traffic.name)?;
            Some(Interface { traffic, speed: *speed })
        });
        Reading {
            at: Instant::now(),
            cpu: self.cgroup.cpu().map(Cpu::Within).or(times),
            memory: self.memory(),
            disks: self.all_disks().into_iter().filter(counts).collect(),
            interfaces: interfaces.collect(),
        }
    }

    fn memory(&self) -> Option<Memory> {
        let machine = parse_meminfo(&self.proc("meminfo"));
        let most = machine.map_or(u64::MAX, |machine| machine.capacity_bytes);
        self.cgroup.memory(most).or(machine)
    }
}

#[cfg(test)]
mod tests;
