//! How busy the disks are, as `/proc/diskstats` counts it.
//!
//! Field 10 of a disk is the milliseconds in which at least one request was under way. A disk that
//! serves many at once can take more even when that is all of the time, so the share is an upper
//! bound there. Source: Documentation/admin-guide/iostats.rst of the kernel.

/// A disk's count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Disk {
    pub(super) name: String,
    pub(super) busy_ms: u64,
}

/// The disks and partitions of `/proc/diskstats`, those left out whose line is not understood.
pub(super) fn parse_diskstats(text: &str) -> impl Iterator<Item = Disk> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        // Major and minor number, name, fields 1 to 9.
        let name = words.nth(2)?.to_owned();
        let busy_ms = words.nth(9)?.parse().ok()?;
        Some(Disk { name, busy_ms })
    })
}

#[cfg(test)]
mod tests {
    use super::{Disk, parse_diskstats};

    const RECORDED: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 68559 11290 3673770 103984 14503 88323 7247072 39094 0 18496 148068 59654 57 4202200 4947 1025 41
 259       1 nvme0n1p1 1 2 3 4 5 6 7 8 0 97 11
   8       0 sda 1 2 3 4 5 6 7 8 0
   8      16 sdb 1 2 3 4 5 6 7 8 0 many 11
   8      32

";

    #[test]
    fn the_busy_time_is_field_10_and_lines_that_are_not_understood_are_left_out() {
        let disk = |name: &str, busy_ms| Disk { name: name.to_owned(), busy_ms };
        let found: Vec<_> = parse_diskstats(RECORDED).collect();
        assert_eq!(found, [disk("loop0", 0), disk("vda", 18496), disk("nvme0n1p1", 97)]);
    }
}
