//! Socket files that listeners of this process have made. Only those are removed: an operator may have
//! taken one away, and another process put its own there.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use subak_base::Address;

/// Device and inode of each file, by its path.
#[derive(Debug, Default)]
pub(super) struct SocketFiles(HashMap<PathBuf, (u64, u64)>);

impl SocketFiles {
    /// Notes the files of addresses that have just been bound; those noted before stay as they are.
    pub(super) fn note<'a>(&mut self, addresses: impl Iterator<Item = &'a Address>) {
        for address in addresses {
            if let Address::Unix(path) = address
                && !self.0.contains_key(path)
                && let Some(file) = identity(path)
            {
                self.0.insert(path.clone(), file);
            }
        }
    }

    /// Removes the file of an address that is not listened on any more, unless another one has taken its
    /// place.
    pub(super) fn remove(&mut self, address: &Address) {
        if let Address::Unix(path) = address
            && let Some(made) = self.0.remove(path)
            && identity(path) == Some(made)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::SocketFiles;
    use std::os::unix::net::UnixListener;
    use subak_base::Address;

    #[test]
    fn a_file_that_another_process_put_there_stays() {
        let name = format!("subak-socket-files-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let address = Address::Unix(path.clone());
        let mut files = SocketFiles::default();
        let ours = UnixListener::bind(&path).unwrap();
        files.note([&address].into_iter());
        files.remove(&address);
        assert!(!path.exists());

        let again = UnixListener::bind(&path).unwrap();
        files.note([&address].into_iter());
        std::fs::remove_file(&path).unwrap();
        let theirs = UnixListener::bind(&path).unwrap();
        files.remove(&address);
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        drop((ours, again, theirs));
    }
}
