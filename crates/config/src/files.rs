//! The files a configuration names: error pages, answers, certificates and keys.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
}

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
}

/// Files held in memory, by the path they are asked for: for tests, fuzzing and tools that check a
/// configuration away from its machine.
#[derive(Clone, Default, Debug)]
pub struct InMemory(pub BTreeMap<PathBuf, Vec<u8>>);

impl Files for InMemory {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let bytes = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.clone())
    }

    fn open_to_all(&self, _: &Path) -> bool {
        false
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
    fn memory_answers_as_the_disk_does() {
        let mut files = InMemory::default();
        files.0.insert(PathBuf::from("a"), vec![1, 2, 3]);
        assert_eq!(files.read(Path::new("a"), 3).unwrap(), [1, 2, 3]);
        assert_eq!(files.read(Path::new("a"), 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(files.read(Path::new("b"), 2).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
