//! What a configuration takes from outside: the files it names and variables of the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where named files are read from.
pub trait Files {
    /// All bytes of a file.
    ///
    /// # Errors
    /// What the system says; `InvalidInput` for something that is no regular file, `FileTooLarge`
    /// above `limit` bytes.
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;

    /// Whether everybody on the machine may read a file, as far as its own mode goes. `false` where
    /// that cannot be known.
    fn open_to_all(&self, path: &Path) -> bool;

    /// The regular files whose paths fit a pattern, in any order, at most `limit` and one more.
    ///
    /// # Errors
    /// A message about the pattern.
    fn matching(&self, pattern: &Path, limit: usize) -> Result<Vec<PathBuf>, String>;

    /// A variable of the environment, when it is set; the error when it is no text.
    fn variable(&self, name: &str) -> Option<Result<String, OsString>>;

    /// The time by which certificates are judged.
    fn now(&self) -> SystemTime;
}

/// `*` stays within a name, and a name that begins with a dot is asked for by a dot.
const MATCHING: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The file system.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        // Asked before opening: opening a pipe would wait for its other end.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    fn open_to_all(&self, path: &Path) -> bool {
        const OTHERS_READ: u32 = 0o004;
        std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & OTHERS_READ != 0)
    }

    fn matching(&self, pattern: &Path, limit: usize) -> Result<Vec<PathBuf>, String> {
        let pattern = pattern.to_str().ok_or("a path that is no text")?;
        let found = glob::glob_with(pattern, MATCHING).map_err(|error| error.msg.to_string())?;
        let mut paths = Vec::new();
        for path in found {
            // What cannot be looked into may hold what is in force now: no reason to go without it.
            let path = path.map_err(|error| {
                format!("{} cannot be looked into: {}", error.path().display(), error.error())
            })?;
            // A link that leads nowhere is refused when it is read, as a file that is missing.
            if !path.is_dir() {
                paths.push(path);
            }
            if paths.len() > limit {
                break;
            }
        }
        Ok(paths)
    }

    fn variable(&self, name: &str) -> Option<Result<String, OsString>> {
        std::env::var_os(name).map(OsString::into_string)
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Files and variables held in memory: for tests, fuzzing and tools that check a configuration away
/// from its machine.
#[derive(Clone, Default, Debug)]
pub struct InMemory {
    /// By the path they are asked for.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// By name.
    pub variables: BTreeMap<String, String>,
}

impl Files for InMemory {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let bytes = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.clone())
    }

    fn open_to_all(&self, _: &Path) -> bool {
        false
    }

    fn matching(&self, pattern: &Path, limit: usize) -> Result<Vec<PathBuf>, String> {
        let pattern = pattern.to_str().ok_or("a path that is no text")?;
        let pattern = glob::Pattern::new(pattern).map_err(|error| error.msg.to_string())?;
        let fits = |path: &&PathBuf| pattern.matches_path_with(path, MATCHING);
        Ok(self.files.keys().filter(fits).take(limit + 1).cloned().collect())
    }

    fn variable(&self, name: &str) -> Option<Result<String, OsString>> {
        self.variables.get(name).cloned().map(Ok)
    }

    /// 1 January 2027: what is read in memory is read alike every time.
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_798_761_600)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use super::{Disk, Files, InMemory};

    #[test]
    fn only_regular_files_of_the_allowed_size_are_read() {
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let bytes = std::fs::read(&this).unwrap();
        assert_eq!(Disk.read(&this, bytes.len()).unwrap(), bytes);
        let kind = |path: &Path, limit| Disk.read(path, limit).unwrap_err().kind();
        assert_eq!(kind(&this, bytes.len() - 1), ErrorKind::FileTooLarge);
        assert_eq!(kind(&this.with_file_name("src"), 9), ErrorKind::InvalidInput);
        assert_eq!(kind(Path::new("/dev/zero"), 9), ErrorKind::InvalidInput);
        assert_eq!(kind(&this.with_file_name("absent"), 9), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_others_may_read_is_open_to_all() {
        let path = std::env::temp_dir().join(format!("subak-open-{}", std::process::id()));
        std::fs::write(&path, "secret").unwrap();
        let open = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Disk.open_to_all(&path)
        };
        assert_eq!([0o600, 0o640, 0o644, 0o604].map(open), [false, false, true, true]);
        std::fs::remove_file(&path).unwrap();
        assert!(!Disk.open_to_all(&path), "a file that is not there");
        assert!(!InMemory::default().open_to_all(&path));
    }

    #[test]
    fn a_link_that_leads_nowhere_matches_and_a_directory_does_not() {
        let directory = std::env::temp_dir().join(format!("subak-match-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("d.toml")).unwrap();
        std::fs::write(directory.join("a.toml"), "").unwrap();
        std::os::unix::fs::symlink("gone", directory.join("b.toml")).unwrap();
        let matching = |limit| Disk.matching(&directory.join("*.toml"), limit).unwrap();
        assert_eq!(matching(9), [directory.join("a.toml"), directory.join("b.toml")]);
        assert_eq!(matching(0).len(), 1, "one more than allowed tells that there are too many");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn memory_answers_as_the_disk_does() {
        let mut files = InMemory::default();
        files.files.insert(PathBuf::from("a"), vec![1, 2, 3]);
        assert_eq!(files.read(Path::new("a"), 3).unwrap(), [1, 2, 3]);
        assert_eq!(files.read(Path::new("a"), 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(files.read(Path::new("b"), 2).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
