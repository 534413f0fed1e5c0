//! Whether what a process writes goes straight to the journal.

use std::os::fd::AsFd;

use rustix::fs::fstat;

/// Whether this descriptor is the stream that systemd made for the journal: JOURNAL_STREAM names its
/// device and inode, so that a process whose output was redirected since is not mistaken.
pub fn leads_to_journal(descriptor: impl AsFd) -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let named = stream.to_str().and_then(device_and_inode);
    named.is_some_and(|named| {
        fstat(descriptor).is_ok_and(|about| named == (about.st_dev, about.st_ino))
    })
}

fn device_and_inode(text: &str) -> Option<(u64, u64)> {
    let (device, inode) = text.split_once(':')?;
    Some((device.parse().ok()?, inode.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::device_and_inode;

    #[test]
    fn a_stream_is_a_device_and_an_inode() {
        assert_eq!(device_and_inode("8:123"), Some((8, 123)));
        for text in ["", "8", "8:", ":1", "8:x", "8:1:2"] {
            assert_eq!(device_and_inode(text), None, "{text}");
        }
    }
}
