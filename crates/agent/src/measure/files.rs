//! Where the kernel's files are, and reading them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is read of one file: a routing table can be endless.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The roots of the kernel's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys`
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// The text of a file, at most [`MAX_FILE_BYTES`] of it; none where there is none to read.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    // Names of interfaces and disks are bytes; all that is looked for is ASCII.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number that is all there is in a file.
pub(super) fn read_number(path: &Path) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

/// The number after a key at the beginning of a line: `key 17`, `Key: 17 kB`.
pub(super) fn number_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == key).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn a_key_is_a_whole_word() {
        let text = "nr_periods 0\nusage_usec 42 \nusage_usec_more 7\nempty\nword x\n";
        assert_eq!(number_of(text, "usage_usec"), Some(42));
        for missing in ["usage", "42", "empty", "word", "other", ""] {
            assert_eq!(number_of(text, missing), None, "{missing}");
        }
    }
}
