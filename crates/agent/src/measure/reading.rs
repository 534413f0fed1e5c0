//! What was counted at one moment, and what two moments together say.

use std::time::Instant;

use subak_balance::weigher::{PerResource, Ppm};

use super::cgroup::CpuWithin;
use super::cpu::CpuTimes;
use super::disk::Disk;
use super::memory::Memory;
use super::network::Traffic;
use super::speed::Speed;

/// All counters at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) cpu: Option<Cpu>,
    pub(super) memory: Option<Memory>,
    pub(super) disks: Vec<Disk>,
    pub(super) interfaces: Vec<Interface>,
}

/// Whose processor time counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cpu {
    Machine(CpuTimes),
    Within(CpuWithin),
}

/// An interface and how fast it is, where that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interface {
    pub(super) traffic: Traffic,
    pub(super) speed: Option<Speed>,
}

impl Reading {
    /// What there is: millicpus, bytes, and bits a second. The disk's is stated elsewhere.
    pub(super) fn capacity(&self) -> PerResource<Option<u64>> {
        let cpu = self.cpu.map(|cpu| match cpu {
            Cpu::Machine(times) => times.processors.saturating_mul(1000),
            Cpu::Within(within) => within.limit_millicpus,
        });
        let speeds = self.interfaces.iter().filter_map(|interface| interface.speed);
        let network = speeds.map(Speed::bits_per_second).reduce(u64::saturating_add);
        PerResource {
            cpu,
            memory: self.memory.map(|memory| memory.capacity_bytes),
            disk: None,
            network,
        }
    }

    /// What share of it was in use since `first`. A counter that went back says nothing.
    pub(super) fn used_since(&self, first: &Reading) -> PerResource<Option<Ppm>> {
        let nanos = self.at.saturating_duration_since(first.at).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        PerResource {
            cpu: cpu_used(first.cpu, self.cpu, nanos),
            memory: self.memory.map(|memory| Ppm::of(memory.used_bytes, memory.capacity_bytes)),
            disk: disk_used(&first.disks, &self.disks, nanos),
            network: network_used(&first.interfaces, &self.interfaces, nanos),
        }
    }
}

fn cpu_used(first: Option<Cpu>, last: Option<Cpu>, nanos: u64) -> Option<Ppm> {
    match (first?, last?) {
        (Cpu::Machine(first), Cpu::Machine(last)) => {
            let busy = last.busy_ticks.checked_sub(first.busy_ticks)?;
            // The time waited for disks is known to go back a little now and then.
            let idle = last.idle_ticks.saturating_sub(first.idle_ticks);
            let all = busy.checked_add(idle).filter(|all| *all > 0)?;
            Some(Ppm::of(busy, all))
        }
        (Cpu::Within(first), Cpu::Within(last)) => {
            let used = last.used_nanos.checked_sub(first.used_nanos)?;
            let possible = share_of(nanos, last.limit_millicpus, 1000)?;
            Some(Ppm::of(used, possible))
        }
        // A limit came or went in between.
        (Cpu::Machine(_), Cpu::Within(_)) | (Cpu::Within(_), Cpu::Machine(_)) => None,
    }
}

/// Of the busiest one.
fn disk_used(first: &[Disk], last: &[Disk], nanos: u64) -> Option<Ppm> {
    let used = last.iter().filter_map(|last| {
        let first = first.iter().find(|first| first.name == last.name)?;
        let busy_ms = last.busy_ms.checked_sub(first.busy_ms)?;
        (nanos > 0).then(|| Ppm::of(busy_ms.saturating_mul(1_000_000), nanos))
    });
    used.max()
}

/// Of the busier direction of the busiest one whose speed is known.
fn network_used(first: &[Interface], last: &[Interface], nanos: u64) -> Option<Ppm> {
    let used = last.iter().filter_map(|last| {
        let first = first.iter().find(|first| first.traffic.name == last.traffic.name)?;
        let received = last.traffic.received_bytes.checked_sub(first.traffic.received_bytes)?;
        let sent = last.traffic.sent_bytes.checked_sub(first.traffic.sent_bytes)?;
        let possible = share_of(nanos, last.speed?.bits_per_second(), 1_000_000_000)?;
        Some(Ppm::of(received.max(sent).saturating_mul(8), possible))
    });
    used.max()
}

/// `number · part ÷ whole`; none when that is nothing.
fn share_of(number: u64, part: u64, whole: u64) -> Option<u64> {
    let product = u128::from(number) * u128::from(part) / u128::from(whole);
    Some(u64::try_from(product).unwrap_or(u64::MAX)).filter(|share| *share > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn reading(at: Instant) -> Reading {
        Reading { at, cpu: None, memory: None, disks: Vec::new(), interfaces: Vec::new() }
    }

    fn machine(busy_ticks: u64, idle_ticks: u64) -> Option<Cpu> {
        Some(Cpu::Machine(CpuTimes { busy_ticks, idle_ticks, processors: 4 }))
    }

    fn within(used_ms: u64) -> Option<Cpu> {
        let used_nanos = used_ms * 1_000_000;
        Some(Cpu::Within(CpuWithin { used_nanos, limit_millicpus: 500 }))
    }

    /// Two readings, two seconds apart.
    fn apart() -> (Reading, Reading) {
        let start = Instant::now();
        (reading(start), reading(start + Duration::from_secs(2)))
    }

    fn ppm(parts: u64) -> Option<Ppm> {
        Some(Ppm::saturating(parts))
    }

    #[test]
    fn the_cpu_of_a_machine_and_of_a_group_with_a_limit() {
        let (mut first, mut last) = apart();
        (first.cpu, last.cpu) = (machine(1000, 500), machine(1150, 550));
        assert_eq!(last.used_since(&first).cpu, ppm(750_000));
        assert_eq!(last.capacity().cpu, Some(4000));
        // Two seconds of half a processor are 1000 ms.
        (first.cpu, last.cpu) = (within(70), within(270));
        assert_eq!(last.used_since(&first).cpu, ppm(200_000));
        assert_eq!(last.capacity().cpu, Some(500));
        (first.cpu, last.cpu) = (within(0), within(1020));
        assert_eq!(last.used_since(&first).cpu, ppm(1_000_000), "ticks are coarse");
    }

    #[test]
    fn what_two_readings_cannot_tell_is_not_known() {
        let (first, last) = apart();
        for (before, after) in [
            (None, machine(1, 1)),
            (machine(1, 1), None),
            (machine(10, 10), machine(9, 20)),
            (machine(10, 10), machine(10, 10)),
            (within(10), within(9)),
            (machine(10, 10), within(10)),
            (within(10), machine(20, 20)),
        ] {
            let (first, last) =
                (Reading { cpu: before, ..first.clone() }, Reading { cpu: after, ..last.clone() });
            assert_eq!(last.used_since(&first).cpu, None, "{before:?} {after:?}");
        }
        let same = Reading { cpu: within(5), ..first.clone() };
        assert_eq!(same.used_since(&same), PerResource::default(), "no time between them");
        assert_eq!(last.used_since(&first), PerResource::default());
        assert_eq!(last.capacity(), PerResource::default());
    }

    #[test]
    fn the_busiest_disk_counts() {
        let (mut first, mut last) = apart();
        let disk = |name: &str, busy_ms| Disk { name: name.to_owned(), busy_ms };
        first.disks = vec![disk("sda", 100), disk("sdb", 100), disk("sdc", 100)];
        last.disks = vec![disk("new", 9000), disk("sdb", 600), disk("sda", 200), disk("sdc", 99)];
        assert_eq!(last.used_since(&first).disk, ppm(250_000));
        last.disks = vec![disk("new", 9000)];
        assert_eq!(last.used_since(&first).disk, None);
    }

    #[test]
    fn the_busier_direction_of_the_busiest_interface_counts() {
        let (mut first, mut last) = apart();
        let interface = |name: &str, received_bytes, sent_bytes, megabit: u64| Interface {
            traffic: Traffic { name: name.to_owned(), received_bytes, sent_bytes },
            speed: Speed::from_bits_per_second(megabit * 1_000_000),
        };
        first.interfaces =
            vec![interface("a", 1000, 0, 8), interface("b", 0, 0, 80), interface("c", 0, 0, 0)];
        // In two seconds 8 Mbit/s are 2,000,000 bytes, 80 Mbit/s ten times that.
        last.interfaces = vec![
            interface("a", 501_000, 300_000, 8),
            interface("b", 0, 4_000_000, 80),
            interface("c", 9_000_000, 9_000_000, 0),
        ];
        assert_eq!(last.used_since(&first).network, ppm(250_000));
        assert_eq!(last.capacity().network, Some(88_000_000));
        last.interfaces[0].traffic.sent_bytes = u64::MAX;
        assert_eq!(last.used_since(&first).network, ppm(1_000_000));
        last.interfaces.drain(..2);
        assert_eq!((last.used_since(&first).network, last.capacity().network), (None, None));
    }

    #[test]
    fn memory_is_as_it_is_now() {
        let (first, mut last) = apart();
        last.memory = Some(Memory { capacity_bytes: 4096, used_bytes: 1024 });
        assert_eq!(last.used_since(&first).memory, ppm(250_000));
        assert_eq!(last.capacity().memory, Some(4096));
    }
}
