//! The file that says which process this is.
//!
//! Whoever holds the lock on it is the process it names; the kernel drops the lock with the process, so
//! a file that a crash left behind is told from one in use, whatever process has that number today.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// How often a file may vanish between opening and locking before that counts as a fault.
const ATTEMPTS: usize = 8;
/// What is read of a file that another process holds.
const MAX_SHOWN_BYTES: u64 = 20;

/// A pid file that is ours. It goes when this is dropped.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    file: File,
}

/// Why there is no pid file.
#[derive(Debug)]
pub enum NoPidFile {
    /// Another process runs with it: the number in it.
    InUse(PathBuf, String),
    /// It cannot be written.
    Failed(PathBuf, io::Error),
}

impl fmt::Display for NoPidFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPidFile::InUse(path, pid) => write!(
                out,
                "process {pid} runs with the pid file {}\n  stop it first (`kill {pid}`), or give \
                 this one a pid_file of its own",
                path.display()
            ),
            NoPidFile::Failed(path, error) => write!(
                out,
                "cannot write the pid file {}: {error}\n  its directory has to be there, and \
                 writable for who starts subak",
                path.display()
            ),
        }
    }
}

impl std::error::Error for NoPidFile {}

impl PidFile {
    /// Makes the path ours and writes this process's number to it. A file that nobody holds any more is
    /// taken over. It stays the property of who made it: what root's programs believe, a process that
    /// has given up root's rights must not be able to rewrite by name.
    ///
    /// # Errors
    /// [`NoPidFile`]; then nothing was changed.
    pub fn claim(path: &Path) -> Result<PidFile, NoPidFile> {
        let failed = |error| NoPidFile::Failed(path.to_owned(), error);
        for _ in 0..ATTEMPTS {
            let mut file = open(path).map_err(failed)?;
            if !file.metadata().map_err(failed)?.is_file() {
                return Err(failed(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "there is something else than a file",
                )));
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut pid = String::new();
                    let _ = file.take(MAX_SHOWN_BYTES).read_to_string(&mut pid);
                    return Err(NoPidFile::InUse(path.to_owned(), pid.trim().to_owned()));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Who held it may have removed it before we had the lock; then it is nobody's way in.
            if !is_at(&file, path) {
                continue;
            }
            file.set_len(0).map_err(failed)?;
            file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
            return Ok(PidFile { path: path.to_owned(), file });
        }
        Err(failed(io::ErrorKind::ResourceBusy.into()))
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).mode(0o644);
    // A link could lead to a file that is not meant, a pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // In a directory that only root may write to, what is left is an empty file that names nobody.
        if is_at(&self.file, &self.path) && std::fs::remove_file(&self.path).is_err() {
            let _ = self.file.set_len(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NoPidFile, PidFile};
    use std::path::PathBuf;

    /// A directory of its own, removed in the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("subak-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn it_names_this_process_and_goes_in_the_end() {
        let directory = Directory::new("pid-file");
        let path = directory.0.join("subak.pid");
        let held = PidFile::claim(&path).unwrap();
        let own = std::process::id().to_string();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{own}\n"));
        let second = PidFile::claim(&path);
        assert!(matches!(&second, Err(NoPidFile::InUse(_, pid)) if *pid == own), "{second:?}");
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_was_left_behind_is_taken_over() {
        let directory = Directory::new("pid-stale");
        let path = directory.0.join("subak.pid");
        std::fs::write(&path, "1234567890\n").unwrap();
        let _held = PidFile::claim(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn what_a_successor_put_there_stays() {
        let directory = Directory::new("pid-successor");
        let path = directory.0.join("subak.pid");
        let held = PidFile::claim(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "17\n").unwrap();
        drop(held);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "17\n");
    }

    #[test]
    fn links_and_what_is_no_file_are_left_alone() {
        let directory = Directory::new("pid-link");
        let (link, precious) = (directory.0.join("subak.pid"), directory.0.join("precious"));
        std::fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        for path in [&link, &directory.0, &directory.0.join("nowhere/subak.pid")] {
            let refused = PidFile::claim(path);
            assert!(matches!(refused, Err(NoPidFile::Failed(..))), "{refused:?}");
        }
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
}
