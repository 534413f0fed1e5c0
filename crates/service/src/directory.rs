//! Directories that the service writes to after it has given up root's rights: `/run/subak` is made
//! anew at every start of the machine, by root, and has to belong to the service.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::account::Account;

/// Makes a directory (mode 0755) where there is none, and gives it to the account where it is root's.
/// Whatever else is there stays as it is: somebody made it so.
///
/// # Errors
/// What the system says.
pub fn hand_over(directory: &Path, account: &Account) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A link would hand over what it points to.
    let found = std::fs::symlink_metadata(directory)?;
    if found.is_dir() && found.uid() == 0 && account.uid() != 0 {
        std::os::unix::fs::lchown(directory, Some(account.uid()), Some(account.gid()))?;
    }
    Ok(())
}
