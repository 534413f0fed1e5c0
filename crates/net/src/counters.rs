//! What the kernel has counted of a connection: segments and bytes, both ways.
//!
//! By `getsockopt(TCP_INFO)`, some 200 ns. The structure has grown at its end with the kernel's
//! versions; what is read here is there since 4.19 (2018). It is read by its offsets, because the C
//! library's declaration ends before them.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

/// Segments and bytes of one connection so far, in and out together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments, with those that carry no data; none where there are none, on a unix socket.
    pub packets: Option<u64>,
    /// Bytes of payload; on TCP also those that were sent again.
    pub bytes: u64,
}

/// Offsets into `struct tcp_info` (linux/tcp.h).
const BYTES_RECEIVED: usize = 128;
const SEGMENTS_OUT: usize = 136;
const SEGMENTS_IN: usize = 140;
const BYTES_SENT: usize = 200;
const LENGTH: usize = 208;

/// What the kernel says of a TCP socket; none when it does not say.
pub(crate) fn of_tcp(socket: &impl AsFd) -> Option<Counters> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, and their number to `length`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result != 0 || (length as usize) < LENGTH {
        return None;
    }
    let narrow = |at: usize| info[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let wide = |at: usize| info[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    Some(Counters {
        packets: Some(u64::from(narrow(SEGMENTS_IN)) + u64::from(narrow(SEGMENTS_OUT))),
        bytes: wide(BYTES_RECEIVED) + wide(BYTES_SENT),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::of_tcp;

    #[test]
    fn counts_what_goes_both_ways() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = of_tcp(&client).unwrap();
        let mut buffer = vec![0; 100_000];
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut buffer[..1000]).unwrap();
        server.write_all(&[2; 3000]).unwrap();
        client.read_exact(&mut buffer[..3000]).unwrap();
        let after = of_tcp(&client).unwrap();
        assert_eq!(after.bytes - before.bytes, 4000);
        let packets = after.packets.unwrap() - before.packets.unwrap();
        assert!((2..=8).contains(&packets), "{packets}");
    }
}
