//! The door: a unix socket of mode 0600, or a TCP address.
//!
//! A socket file stays behind when its process is killed, so one that is found has to be told from one
//! that is in use. Whoever holds the lock on `PATH.lock` owns `PATH`; the kernel drops the lock with
//! the process. The owner may replace a socket there that nobody listens on, and nothing else: no
//! other kind of file, no socket of another program. The mode is set before the socket has a name, so
//! there is no moment in which others could open it.
//!
//! The door never keeps Subak from serving. The usual place is `/run/subak/admin.sock`, or
//! `$XDG_RUNTIME_DIR/subak/admin.sock` for users who may not write there; where another instance has
//! that, `admin-2.sock` and so on, up to 16.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

/// Instances that find a usual place.
const USUAL_PLACES: u32 = 16;
/// Connections that wait to be accepted. Beyond that a client tries again after a second: a burst of
/// strangers, who are accepted at once, must not make an operator wait for that.
const BACKLOG: i32 = 512;

/// Where the Admin API is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Door {
    /// A unix socket in the usual place.
    Usual,
    /// A unix socket here.
    Socket(PathBuf),
    /// This address.
    Tcp(SocketAddr),
}

/// A door that is open: somebody may knock already.
#[derive(Debug)]
pub struct Opened {
    pub(crate) listening: Listening,
    pub(crate) place: String,
    pub(crate) file: Option<SocketFile>,
}

impl Opened {
    /// Where clients go: a path, or an address.
    pub fn place(&self) -> &str {
        &self.place
    }
}

#[derive(Debug)]
pub(crate) enum Listening {
    Unix(UnixListener),
    Tcp(std::net::TcpListener),
}

/// Why a door stays closed.
#[derive(Debug)]
pub enum NotOpen {
    /// Another process listens at this path.
    InUse(PathBuf),
    /// There is something at this path that is not a socket.
    NotASocket(PathBuf),
    /// No usual place is free, or none can be written to; the last one that was tried and why not.
    NoUsualPlace(Box<NotOpen>),
    /// The path cannot be used.
    Path(PathBuf, io::Error),
    /// The address cannot be used.
    Tcp(SocketAddr, io::Error),
}

impl fmt::Display for NotOpen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOpen::InUse(path) => {
                write!(out, "{} is in use: give each instance one of its own", path.display())
            }
            NotOpen::NotASocket(path) => {
                write!(out, "{} is not a socket: remove it, or choose another path", path.display())
            }
            NotOpen::NoUsualPlace(last) => write!(
                out,
                "no usual place is free, the last: {last}; say where by admin = {{ socket = … }}, or \
                 admin = false"
            ),
            NotOpen::Path(path, error) => write!(out, "{}: {error}", path.display()),
            NotOpen::Tcp(address, error) => write!(out, "{address}: {error}"),
        }
    }
}

impl std::error::Error for NotOpen {}

impl Door {
    /// Opens it.
    ///
    /// # Errors
    /// [`NotOpen`]; then nothing was changed.
    pub fn open(&self) -> Result<Opened, NotOpen> {
        match self {
            Door::Usual => usual(&usual_directories()),
            Door::Socket(path) => unix(path),
            Door::Tcp(address) => tcp(*address),
        }
    }
}

/// The directories in which a socket is looked for and made, the best first.
fn usual_directories() -> Vec<PathBuf> {
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_user = of_user.filter(|directory| directory.is_absolute());
    [Some(PathBuf::from("/run")), of_user]
        .into_iter()
        .flatten()
        .map(|directory| directory.join("subak"))
        .collect()
}

fn usual_paths(directory: &Path) -> impl Iterator<Item = PathBuf> {
    (1..=USUAL_PLACES).map(|number| match number {
        1 => directory.join("admin.sock"),
        _ => directory.join(format!("admin-{number}.sock")),
    })
}

/// Every place in which [`Door::Usual`] may have opened a socket, the likeliest first.
pub fn usual_sockets() -> Vec<PathBuf> {
    let directories = usual_directories();
    directories.iter().flat_map(|directory| usual_paths(directory).collect::<Vec<_>>()).collect()
}

fn usual(directories: &[PathBuf]) -> Result<Opened, NotOpen> {
    let mut last = NotOpen::Path("/run/subak".into(), io::ErrorKind::NotFound.into());
    for directory in directories {
        let made = DirBuilder::new().mode(0o755).create(directory);
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            last = NotOpen::Path(directory.clone(), error);
            continue;
        }
        for path in usual_paths(directory) {
            match unix(&path) {
                Ok(opened) => return Ok(opened),
                // The next one may be free.
                Err(taken @ (NotOpen::InUse(_) | NotOpen::NotASocket(_))) => last = taken,
                Err(other) => {
                    last = other;
                    break;
                }
            }
        }
    }
    Err(NotOpen::NoUsualPlace(Box::new(last)))
}

fn unix(path: &Path) -> Result<Opened, NotOpen> {
    let failed = |error| NotOpen::Path(path.to_owned(), error);
    let mut file = SocketFile::claim(path)?;
    let address = SockAddr::unix(path).map_err(failed)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
    // The file that `bind` makes has the mode the socket has at that moment.
    let socket = File::from(OwnedFd::from(socket));
    socket.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    let socket = Socket::from(OwnedFd::from(socket));
    socket.bind(&address).map_err(failed)?;
    socket.listen(BACKLOG).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let listening = Listening::Unix(UnixListener::from(OwnedFd::from(socket)));
    file.made = identity(path);
    Ok(Opened { listening, place: path.display().to_string(), file: Some(file) })
}

fn tcp(address: SocketAddr) -> Result<Opened, NotOpen> {
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = std::net::TcpListener::from(socket);
        let place = listener.local_addr()?.to_string();
        Ok(Opened { listening: Listening::Tcp(listener), place, file: None })
    };
    bind().map_err(|error| NotOpen::Tcp(address, error))
}

/// A path that belongs to this process. The socket there is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode of the socket.
    made: Option<(u64, u64)>,
    /// Held as long as the path is ours. The file stays: removing it would let two processes lock
    /// two files of one name.
    _lock: File,
}

impl SocketFile {
    /// Makes the path ours, and free.
    fn claim(path: &Path) -> Result<SocketFile, NotOpen> {
        let failed = |error| NotOpen::Path(path.to_owned(), error);
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        // A link could lead to a file that is not meant.
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        let lock = options.open(&lock_path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(NotOpen::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(NotOpen::NotASocket(path.to_owned()));
            }
            Ok(_) if is_stale(path) => std::fs::remove_file(path).map_err(failed)?,
            Ok(_) => return Err(NotOpen::InUse(path.to_owned())),
        }
        Ok(SocketFile { path: path.to_owned(), made: None, _lock: lock })
    }
}

/// Whether nobody listens at this socket. Where that cannot be said, somebody does. Does not wait: the
/// queue of who listens may be full.
fn is_stale(path: &Path) -> bool {
    let connect = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    connect().is_err_and(|error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have taken it away by hand, with its lock, for another process.
        if self.made.is_some() && identity(&self.path) == self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory of its own, removed in the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new() -> Directory {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("subak-admin-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_socket_is_for_its_owner_alone_and_goes_with_the_door() {
        let directory = Directory::new();
        let path = directory.0.join("admin.sock");
        let opened = Door::Socket(path.clone()).open().unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(opened.place(), path.display().to_string());
        UnixStream::connect(&path).expect("somebody listens");
        drop(opened);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_somebody_else_put_there_stays() {
        let directory = Directory::new();
        let path = directory.0.join("admin.sock");
        let opened = Door::Socket(path.clone()).open().unwrap();
        std::fs::remove_file(&path).unwrap();
        let _theirs = UnixListener::bind(&path).unwrap();
        drop(opened);
        UnixStream::connect(&path).expect("they still listen");
    }

    #[test]
    fn a_path_has_one_owner_until_it_goes() {
        let directory = Directory::new();
        let path = directory.0.join("admin.sock");
        let first = Door::Socket(path.clone()).open().unwrap();
        let second = Door::Socket(path.clone()).open();
        assert!(matches!(second, Err(NotOpen::InUse(_))), "{second:?}");
        UnixStream::connect(&path).expect("the first still listens");
        drop(first);
        Door::Socket(path).open().expect("it is free now");
    }

    #[test]
    fn a_socket_nobody_listens_on_is_replaced() {
        let directory = Directory::new();
        let path = directory.0.join("admin.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "it was left behind");
        let _opened = Door::Socket(path.clone()).open().unwrap();
        UnixStream::connect(&path).expect("somebody listens");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_belongs_to_others_is_left_alone() {
        let directory = Directory::new();
        let path = directory.0.join("theirs.sock");
        let theirs = UnixListener::bind(&path).unwrap();
        let refused = Door::Socket(path.clone()).open();
        assert!(matches!(refused, Err(NotOpen::InUse(_))), "{refused:?}");
        UnixStream::connect(&path).expect("they still listen");
        drop(theirs);

        let busy = directory.0.join("busy.sock");
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::unix(&busy).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let _waits = UnixStream::connect(&busy).unwrap();
        let refused = Door::Socket(busy).open();
        assert!(matches!(refused, Err(NotOpen::InUse(_))), "its queue is full: {refused:?}");

        let file = directory.0.join("notes.txt");
        std::fs::write(&file, "notes").unwrap();
        let refused = Door::Socket(file.clone()).open();
        assert!(matches!(refused, Err(NotOpen::NotASocket(_))), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "notes");

        let link = directory.0.join("link.sock.lock");
        std::os::unix::fs::symlink(directory.0.join("elsewhere"), &link).unwrap();
        let refused = Door::Socket(directory.0.join("link.sock")).open();
        assert!(matches!(refused, Err(NotOpen::Path(..))), "{refused:?}");
        assert!(!directory.0.join("elsewhere").exists());
    }

    #[test]
    fn every_instance_finds_a_usual_place_until_there_are_too_many() {
        let directory = Directory::new();
        let places = [directory.0.join("file/subak"), directory.0.join("subak")];
        let opened: Vec<_> = (0..USUAL_PLACES).map(|_| usual(&places).unwrap()).collect();
        let names: Vec<_> =
            opened.iter().filter_map(|one| one.place().rsplit('/').next()).collect();
        assert_eq!(names[..3], ["admin.sock", "admin-2.sock", "admin-3.sock"]);
        assert!(matches!(usual(&places), Err(NotOpen::NoUsualPlace(_))));
        drop(opened);
        assert!(usual(&places).unwrap().place().ends_with("/admin.sock"));
    }

    #[test]
    fn a_path_that_cannot_be_is_said_to_be_so() {
        let directory = Directory::new();
        let long = directory.0.join("x".repeat(120));
        assert!(matches!(Door::Socket(long).open(), Err(NotOpen::Path(..))));
        let nowhere = directory.0.join("nowhere/admin.sock");
        assert!(matches!(Door::Socket(nowhere).open(), Err(NotOpen::Path(..))));
    }

    #[test]
    fn a_taken_port_is_said_to_be_so() {
        let first = Door::Tcp("127.0.0.1:0".parse().unwrap()).open().unwrap();
        let address = first.place().parse().unwrap();
        assert!(matches!(Door::Tcp(address).open(), Err(NotOpen::Tcp(..))));
    }
}
