//! Where accounts, certificates, failures and waiting challenges are kept, for all processes that name
//! the same directory.
//!
//! ```text
//! storage/                           0700
//!   lock                             held (flock) by the process that orders
//!   accounts/DIRECTORY.json          key and name of the account, by the directory's digest
//!   certificates/NAME-DIGEST.pem     private key and chain, in one file, so that they are one
//!   certificates/NAME-DIGEST.json    failures since the last success
//!   challenges/http-01/TOKEN         what is to be answered, while it is asked for
//!   challenges/tls-alpn-01/NAME
//! ```
//!
//! Files have mode 0600 and appear whole: written beside, synced, renamed. A lock goes with its process,
//! so none is left behind. A file is at most [`LARGEST`]; of waiting challenges at most [`MOST`] count.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use subak_config::AcmeChallenge;

/// Bytes of a file that is read.
const LARGEST: u64 = 256 * 1024;
/// Challenges that wait at once.
const MOST: usize = 1000;

/// One storage.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    root: PathBuf,
}

/// The right to order and to write, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Storage {
    pub(crate) fn new(root: PathBuf) -> Storage {
        Storage { root }
    }

    /// Makes the directories that are missing.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let challenges = Path::new("challenges");
        let parts = [
            PathBuf::new(),
            "accounts".into(),
            "certificates".into(),
            challenges.join(AcmeChallenge::Http01.name()),
            challenges.join(AcmeChallenge::TlsAlpn01.name()),
        ];
        for part in parts {
            DirBuilder::new().recursive(true).mode(0o700).create(self.root.join(part))?;
        }
        Ok(())
    }

    /// Whether somebody but its owner may look into it.
    pub(crate) fn is_open_to_others(&self) -> bool {
        let mode = fs::metadata(&self.root).map_or(0, |about| about.permissions().mode());
        mode & 0o077 != 0
    }

    /// The lock, if no process has it.
    pub(crate) fn try_lock(&self) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.root.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The account at a directory.
    pub(crate) fn account_file(&self, directory: &str) -> PathBuf {
        self.root.join("accounts").join(format!("{}.json", digest(&[directory])))
    }

    /// Key and chain.
    pub(crate) fn certificate_file(&self, id: &str) -> PathBuf {
        self.root.join("certificates").join(format!("{id}.pem"))
    }

    /// Failures since the last success.
    pub(crate) fn failures_file(&self, id: &str) -> PathBuf {
        self.root.join("certificates").join(format!("{id}.json"))
    }

    fn challenges(&self, kind: AcmeChallenge) -> PathBuf {
        self.root.join("challenges").join(kind.name())
    }

    /// Challenges of one kind that wait: tokens or names, and what each is answered with.
    pub(crate) fn waiting(&self, kind: AcmeChallenge) -> io::Result<Vec<(String, String)>> {
        let mut waiting = Vec::new();
        for entry in fs::read_dir(self.challenges(kind))?.take(MOST) {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if !is_word(&name) {
                continue;
            }
            // One that has gone meanwhile does not wait any more.
            if let Some(answer) = read(&self.challenges(kind).join(&name))? {
                waiting.push((name, answer));
            }
        }
        waiting.sort();
        Ok(waiting)
    }

    /// Has every process that shares this storage answer a challenge.
    pub(crate) fn ask(
        &self,
        _: &Lock,
        kind: AcmeChallenge,
        name: &str,
        answer: &str,
    ) -> io::Result<()> {
        if !is_word(name) {
            let what = "a token that is none: it holds other characters than RFC 8555 allows";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        write(&self.challenges(kind).join(name), answer.as_bytes())
    }

    /// No challenge waits any more, whoever has left it.
    pub(crate) fn ask_nothing(&self, _: &Lock) -> io::Result<()> {
        for kind in [AcmeChallenge::Http01, AcmeChallenge::TlsAlpn01] {
            for entry in fs::read_dir(self.challenges(kind))? {
                remove(&entry?.path())?;
            }
        }
        Ok(())
    }
}

/// What can name a file here: a token (base64url) or a host name, and no file that is being written.
fn is_word(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.starts_with('.') && (1..=253).contains(&text.len()) && text.bytes().all(is_fit)
}

/// Eight hexadecimal digits that stand for these words.
pub(crate) fn digest(words: &[&str]) -> String {
    let joined = words.join("\n");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, joined.as_bytes());
    digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// The file's text; none if there is no file.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(text))
}

/// What tells this version of a file from others; none if there is no file.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::metadata(path).ok()?;
    let changed = (about.ctime(), about.ctime_nsec());
    Some(Stamp { inode: about.ino(), length: about.len(), changed })
}

/// Puts a file there as a whole, for its owner only.
pub(crate) fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = directory.join(format!(".{}-{number}", std::process::id()));
    let mut options = OpenOptions::new();
    let written = options.write(true).create(true).truncate(true).mode(0o600).open(&beside);
    let written = written.and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(directory)?.sync_all()
    });
    if written.is_err() {
        // The error that is told is the first one.
        _ = fs::remove_file(&beside);
    }
    written
}

/// Takes a file away; well if there is none.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> (Storage, PathBuf) {
        let root = std::env::temp_dir().join(format!("subak-acme-{}-{name}", std::process::id()));
        _ = fs::remove_dir_all(&root);
        let storage = Storage::new(root.clone());
        storage.prepare().unwrap();
        (storage, root)
    }

    #[test]
    fn files_are_whole_private_and_tell_their_versions() {
        let (storage, root) = scratch("files");
        assert!(!storage.is_open_to_others());
        let file = storage.certificate_file("a.test-01234567");
        assert_eq!((read(&file).unwrap(), stamp(&file)), (None, None));
        write(&file, b"one").unwrap();
        let first = stamp(&file);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        write(&file, b"two").unwrap();
        assert_eq!(read(&file).unwrap().as_deref(), Some("two"));
        assert!(first.is_some() && stamp(&file) != first);
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left over"
        );
        fs::write(&file, vec![b'x'; LARGEST as usize + 1]).unwrap();
        assert_eq!(read(&file).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        remove(&file).unwrap();
        remove(&file).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(storage.is_open_to_others());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn one_at_a_time_has_the_lock_and_challenges_go_with_it() {
        let (storage, root) = scratch("lock");
        let lock = storage.try_lock().unwrap().expect("nobody has it");
        assert!(storage.try_lock().unwrap().is_none(), "somebody has it");
        let http = AcmeChallenge::Http01;
        storage.ask(&lock, http, "token_-9", "token_-9.thumb").unwrap();
        storage.ask(&lock, AcmeChallenge::TlsAlpn01, "a.test", "token.thumb").unwrap();
        for bad in ["", "..", ".hidden", "a/b", "../../etc/passwd", "a b", "ä"] {
            assert!(storage.ask(&lock, http, bad, "x").is_err(), "{bad:?} is no token");
        }
        let other = Storage::new(root.clone());
        let waiting = other.waiting(http).unwrap();
        assert_eq!(waiting, [("token_-9".to_owned(), "token_-9.thumb".to_owned())]);
        storage.ask_nothing(&lock).unwrap();
        assert!(other.waiting(http).unwrap().is_empty());
        drop(lock);
        assert!(other.try_lock().unwrap().is_some());
        fs::remove_dir_all(root).unwrap();
    }
}
