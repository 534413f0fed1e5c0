//! What the kernel says of this process, from /proc/self. What cannot be read is left out.

use std::fs;
use std::path::Path;

/// Figures of this process.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Process {
    pub(crate) start_time_s: Option<f64>,
    pub(crate) cpu_s: Option<f64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_descriptors: Option<u64>,
    pub(crate) most_descriptors: Option<u64>,
}

impl Process {
    /// As of now.
    pub(crate) fn read() -> Process {
        let read = |path: &str| fs::read_to_string(path).ok();
        let stat = read("/proc/self/stat").and_then(|text| Stat::parse(&text));
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let boot = read("/proc/stat").and_then(|text| boot_time_s(&text));
        let start = stat.as_ref().map(|stat| stat.start_ticks as f64 / ticks);
        let page = rustix::param::page_size() as u64;
        Process {
            start_time_s: boot.zip(start).map(|(boot, start)| boot as f64 + start),
            cpu_s: stat.as_ref().map(|stat| stat.cpu_ticks as f64 / ticks),
            resident_bytes: stat.as_ref().map(|stat| stat.resident_pages * page),
            open_descriptors: open_descriptors(),
            most_descriptors: read("/proc/self/limits").and_then(|text| most_descriptors(&text)),
        }
    }
}

struct Stat {
    cpu_ticks: u64,
    start_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    /// See proc_pid_stat(5). The second field is the program's name in parentheses and may hold
    /// anything, so fields are counted from its end.
    fn parse(text: &str) -> Option<Stat> {
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse().ok());
        let cpu_ticks = u64::checked_add(field(14)?, field(15)?)?;
        Some(Stat { cpu_ticks, start_ticks: field(22)?, resident_pages: field(24)? })
    }
}

fn boot_time_s(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Linux tells since 6.2 by the directory's size; before, the entries are counted.
fn open_descriptors() -> Option<u64> {
    let directory = Path::new("/proc/self/fd");
    match fs::metadata(directory).ok()?.len() {
        0 => Some(fs::read_dir(directory).ok()?.count() as u64),
        size => Some(size),
    }
}

fn most_descriptors(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_figures() {
        let process = Process::read();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - process.start_time_s.unwrap();
        assert!((-2.0..86_400.0).contains(&age), "{age}");
        assert!(process.cpu_s.unwrap() < 86_400.0);
        assert!(process.resident_bytes.unwrap() > 100_000);
        // Other tests of this program open and close some meanwhile.
        let files: Vec<_> = (0..64).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        assert!(Process::read().open_descriptors.unwrap() > process.open_descriptors.unwrap());
        drop(files);
        assert!(process.most_descriptors.unwrap() >= process.open_descriptors.unwrap());
    }

    #[test]
    fn a_program_may_have_any_name() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 4242 1000 77 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.cpu_ticks, stat.start_ticks, stat.resident_pages), (200, 4242, 77));
        assert!(Stat::parse("7 (x) S 1").is_none());
    }
}
