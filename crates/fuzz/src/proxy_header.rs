//! Headers of the PROXY protocol: what a plain reading says, whatever arrives after what.

use std::net::{IpAddr, SocketAddr};

use subak_message::proxy_header::{Announced, Ends, Progress, V2_MOST, Version, read, write};

use crate::cuts;

/// Checks one input.
pub fn check(data: &[u8]) {
    let whole = read(data);
    let plain = plain(data);
    let (header, consumed) = match whole {
        Ok(Progress::Complete { header, consumed }) => (header, consumed),
        Ok(Progress::Absent) => {
            assert!(!begins(data, b"PROXY ") && !begins(data, SIGNATURE));
            return;
        }
        Ok(Progress::Incomplete) => {
            // Nothing that is there already decides it.
            for cut in cuts(data.len()) {
                assert_eq!(read(&data[..cut]), Ok(Progress::Incomplete));
            }
            return;
        }
        Err(_) => {
            assert_eq!(plain, None, "a header that a plain reading takes was refused");
            return;
        }
    };
    assert!(consumed <= data.len());
    for cut in cuts(consumed).filter(|cut| *cut < consumed) {
        assert_eq!(read(&data[..cut]), Ok(Progress::Incomplete), "cut at {cut}");
    }
    if let Some((ends, length)) = plain {
        assert_eq!(
            (header.ends.map(|ends| (ends.source, ends.destination)), consumed),
            (ends, length)
        );
    }
    // What is written of it says the same.
    let announced = header.ends.map(|ends: Ends| Announced {
        alpn: header.tlvs.alpn(),
        authority: header.tlvs.authority(),
        tls: header.tlvs.tls(),
        checksum: consumed + 7 <= V2_MOST,
        ends,
    });
    let mut written = Vec::new();
    write(&mut written, header.version, announced.as_ref());
    let Ok(Progress::Complete { header: again, consumed }) = read(&written) else {
        panic!("what was written cannot be read: {written:?}");
    };
    assert_eq!((again.ends, consumed), (header.ends, written.len()));
    if header.version == Version::V2 && header.ends.is_some() {
        assert_eq!(again.tlvs.alpn(), header.tlvs.alpn());
        assert_eq!(again.tlvs.authority(), header.tlvs.authority());
        assert_eq!(again.tlvs.tls(), header.tlvs.tls());
    }
}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn begins(data: &[u8], with: &[u8]) -> bool {
    let both = data.len().min(with.len());
    data[..both] == with[..both]
}

type Plain = (Option<(SocketAddr, SocketAddr)>, usize);

/// Source, destination and length of a header that is beyond doubt: TCP over IPv4 or IPv6 without TLVs.
fn plain(data: &[u8]) -> Option<Plain> {
    if let Some(rest) = data.strip_prefix(SIGNATURE) {
        let addresses = match rest {
            [0x21, 0x11, 0, 12, rest @ ..] => rest.get(..12)?,
            [0x21, 0x21, 0, 36, rest @ ..] => rest.get(..36)?,
            _ => return None,
        };
        let size = (addresses.len() - 4) / 2;
        let ip = |bytes: &[u8]| match bytes.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(bytes).expect("four")),
            _ => IpAddr::from(<[u8; 16]>::try_from(bytes).expect("sixteen")),
        };
        let port = |at: usize| {
            u16::from(addresses[2 * size + at]) << 8 | u16::from(addresses[2 * size + at + 1])
        };
        let end = |from: usize, port| {
            SocketAddr::new(ip(&addresses[from..from + size]).to_canonical(), port)
        };
        return Some((Some((end(0, port(0)), end(size, port(2)))), 16 + addresses.len()));
    }
    let text = data.strip_prefix(b"PROXY ")?;
    let end = text.windows(2).take(100).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(&text[..end]).ok()?;
    let words: Vec<_> = line.split(' ').collect();
    let [family @ ("TCP4" | "TCP6"), source, destination, from, to] = words[..] else {
        return None;
    };
    let ip = |text: &str| {
        let ip: IpAddr = text.parse().ok()?;
        (ip.is_ipv4() == (family == "TCP4")).then_some(ip.to_canonical())
    };
    let port = |text: &str| {
        let port: u16 = text.parse().ok()?;
        (port.to_string() == text).then_some(port)
    };
    let source = SocketAddr::new(ip(source)?, port(from)?);
    let destination = SocketAddr::new(ip(destination)?, port(to)?);
    Some((Some((source, destination)), 6 + end + 2))
}
