//! Golden bytes of the specification, round trips, every truncation.

use proptest::prelude::*;

use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ends(source: &str, destination: &str) -> Ends {
    Ends { source: address(source), destination: address(destination) }
}

/// The header, which has to be all of the bytes.
#[track_caller]
fn whole(bytes: &[u8]) -> ProxyHeader<'_> {
    match read(bytes) {
        Ok(Progress::Complete { header, consumed }) if consumed == bytes.len() => header,
        other => panic!("{other:?}"),
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

const V2_HEAD: &str = "0d0a0d0a 000d0a51 5549540a";

#[test]
fn lines_of_the_specification_are_read() {
    // Section 2.1: the longest of each family, and the shortest.
    let most = "255.255.255.255";
    let line = format!("PROXY TCP4 {most} {most} 65535 65535\r\n");
    assert_eq!(line.len(), 56);
    let both = format!("{most}:65535");
    assert_eq!(whole(line.as_bytes()).ends, Some(ends(&both, &both)));
    let most = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let line = format!("PROXY TCP6 {most} {most} 65535 65535\r\n");
    assert_eq!(line.len(), 104);
    let both = format!("[{most}]:65535");
    assert_eq!(whole(line.as_bytes()).ends, Some(ends(&both, &both)));
    assert_eq!(whole(b"PROXY UNKNOWN\r\n").ends, None);
    let line = format!("PROXY UNKNOWN {most} {most} 65535 65535\r\n");
    assert_eq!(line.len(), V1_MOST);
    assert_eq!(whole(line.as_bytes()).ends, None);
    let line = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nGET / HTTP/1.1\r\n";
    let Ok(Progress::Complete { header, consumed }) = read(line) else { panic!("a header") };
    assert_eq!(header.ends, Some(ends("192.168.0.1:56324", "192.168.0.11:443")));
    assert_eq!(&line[consumed..], b"GET / HTTP/1.1\r\n");
}

#[test]
fn lines_that_leave_a_doubt_are_refused() {
    for line in [
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP5 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n",
        "PROXY TCP4  1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 01 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 +1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 65536 1\r\n",
        "PROXY TCP4 1.1.1.01 1.1.1.1 1 1\r\n",
        "PROXY TCP4 1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 ::1 ::1 1 1\r\n",
        "PROXY TCP6 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP6 ::1%lo ::1 1 1\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY TCP4 \u{e9} 1.1.1.1 1 1\r\n",
    ] {
        assert_eq!(read(line.as_bytes()), Err(ProxyHeaderError::Line), "{line:?}");
    }
    let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    assert_eq!(read(&endless), Err(ProxyHeaderError::LineTooLong));
    assert_eq!(read(&endless[..V1_MOST - 1]), Ok(Progress::Incomplete));
}

#[test]
fn what_begins_otherwise_is_no_header_as_soon_as_that_is_certain() {
    for bytes in
        [&b"G"[..], b"PU", b"PRI * HTTP/2.0\r\n", b"\x16\x03\x01", b"\r\n\r\n\0\r\nQUIX", b"proxy "]
    {
        assert_eq!(read(bytes), Ok(Progress::Absent), "{bytes:?}");
    }
    for bytes in [&b""[..], b"P", b"PROXY", b"\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21"] {
        assert_eq!(read(bytes), Ok(Progress::Incomplete), "{bytes:?}");
    }
}

#[test]
fn headers_of_version_2_are_read_byte_for_byte() {
    // 192.0.2.1:56324 → 198.51.100.2:443.
    let bytes = hex(&format!("{V2_HEAD} 21 11 000c c0000201 c6336402 dc04 01bb"));
    let expected = ends("192.0.2.1:56324", "198.51.100.2:443");
    assert_eq!(whole(&bytes).ends, Some(expected));
    let mut written = Vec::new();
    write(&mut written, Version::V2, Some(&expected.into()));
    assert_eq!(written, bytes);

    let bytes = hex(&format!(
        "{V2_HEAD} 21 21 0024 20010db8000000000000000000000001 20010db8000000000000000000000002 0001 ffff"
    ));
    assert_eq!(whole(&bytes).ends, Some(ends("[2001:db8::1]:1", "[2001:db8::2]:65535")));

    // The proxy's own connections: with nothing, and with what is to be passed over.
    let local = hex(&format!("{V2_HEAD} 20 00 0000"));
    assert_eq!(whole(&local).ends, None);
    let mut written = Vec::new();
    write(&mut written, Version::V2, None);
    assert_eq!(written, local);
    assert_eq!(whole(&hex(&format!("{V2_HEAD} 20 ff 0003 ffffff"))).ends, None);

    // UDP, a unix socket, unspecified: the connection's own ends.
    let udp = hex(&format!("{V2_HEAD} 21 12 000c c0000201 c6336402 dc04 01bb"));
    assert_eq!(whole(&udp).ends, None);
    let unix = [hex(&format!("{V2_HEAD} 21 31 00d8")), vec![b'/'; 216]].concat();
    assert_eq!(whole(&unix).ends, None);
    let bare = hex(&format!("{V2_HEAD} 21 00 0005 01 0002 6832"));
    assert_eq!((whole(&bare).ends, whole(&bare).tlvs.alpn()), (None, Some(&b"h2"[..])));
}

#[test]
fn headers_of_version_2_that_do_not_fit_are_refused() {
    for (bytes, error) in [
        ("11 11 0000", ProxyHeaderError::Version),
        ("31 11 0000", ProxyHeaderError::Version),
        ("22 11 0000", ProxyHeaderError::Command),
        ("21 11 000b c0000201 c6336402 dc04 01", ProxyHeaderError::Addresses),
        ("21 21 000c c0000201 c6336402 dc04 01bb", ProxyHeaderError::Addresses),
        ("21 11 0ff1", ProxyHeaderError::TooLong),
        ("21 11 ffff", ProxyHeaderError::TooLong),
        ("21 11 000d c0000201 c6336402 dc04 01bb 01", ProxyHeaderError::Tlv),
        ("21 11 000f c0000201 c6336402 dc04 01bb 01 0001", ProxyHeaderError::Tlv),
        // SSL: too short for its own head, and with a part that does not fit.
        ("21 00 0007 20 0004 01 000000", ProxyHeaderError::Tlv),
        ("21 00 000b 20 0008 01 00000000 21 0009", ProxyHeaderError::Tlv),
        ("21 00 0007 03 0004 00000000", ProxyHeaderError::Checksum),
        ("21 00 0006 03 0003 000000", ProxyHeaderError::Checksum),
    ] {
        assert_eq!(read(&hex(&format!("{V2_HEAD} {bytes}"))), Err(error), "{bytes}");
    }
}

/// As HAProxy 2.6 sends it with `send-proxy-v2-ssl-cn`, but for the checksum, which is ours.
#[test]
fn what_is_said_of_tls_is_read_and_written() {
    let tls = Tls {
        version: Some(b"TLSv1.3"),
        cipher: Some(b"TLS_AES_256_GCM_SHA384"),
        common_name: Some(b"client.example"),
        verified: true,
    };
    let announced = Announced {
        alpn: Some(b"h2"),
        authority: Some(b"www.example.com"),
        tls: Some(tls),
        checksum: true,
        ..ends("[::1]:2", "192.0.2.1:443").into()
    };
    let mut bytes = b"before".to_vec();
    write(&mut bytes, Version::V2, Some(&announced));
    let bytes = &bytes[6..];
    let header = whole(bytes);
    assert_eq!(header.ends, Some(ends("[::1]:2", "192.0.2.1:443")));
    assert_eq!(header.tlvs.alpn(), Some(&b"h2"[..]));
    assert_eq!(header.tlvs.authority(), Some(&b"www.example.com"[..]));
    assert_eq!(header.tlvs.tls(), Some(tls));
    // But for the byte that says that there is a checksum.
    for at in (16..bytes.len()).filter(|at| *at != bytes.len() - 7) {
        let mut broken = bytes.to_vec();
        broken[at] ^= 1;
        assert!(!matches!(read(&broken), Ok(Progress::Complete { .. })), "byte {at}");
    }
}

fn any_address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip.to_canonical(), port))
}

fn text(most: usize) -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 0..most))
}

proptest! {
    #[test]
    fn what_is_written_is_read_and_every_part_of_it_asks_for_more(
        source in any_address(),
        destination in any_address(),
        v2 in any::<bool>(),
        alpn in text(20),
        authority in text(300),
        tls in proptest::option::of((text(10), text(30), text(3000), any::<bool>())),
        checksum in any::<bool>(),
        behind in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let tls = tls.as_ref().map(|(version, cipher, common_name, verified)| Tls {
            version: version.as_deref(),
            cipher: cipher.as_deref(),
            common_name: common_name.as_deref(),
            verified: *verified,
        });
        let announced = Announced {
            ends: Ends { source, destination },
            alpn: alpn.as_deref(),
            authority: authority.as_deref(),
            tls,
            checksum,
        };
        let version = if v2 { Version::V2 } else { Version::V1 };
        let mut bytes = Vec::new();
        write(&mut bytes, version, Some(&announced));
        let length = bytes.len();
        let most = if v2 { V2_MOST } else { V1_MOST };
        prop_assert!(length <= most);
        for end in 0..length {
            prop_assert_eq!(read(&bytes[..end]), Ok(Progress::Incomplete));
        }
        bytes.extend_from_slice(&behind);
        let Ok(Progress::Complete { header, consumed }) = read(&bytes) else {
            panic!("{:?}", read(&bytes));
        };
        prop_assert_eq!(consumed, length);
        prop_assert_eq!(header.version, version);
        prop_assert_eq!(header.ends, Some(announced.ends));
        if v2 {
            prop_assert_eq!(header.tlvs.alpn(), announced.alpn);
            prop_assert_eq!(header.tlvs.authority(), announced.authority);
            prop_assert_eq!(header.tlvs.tls(), announced.tls);
        }
    }

    #[test]
    fn arbitrary_bytes_are_judged_without_a_panic(
        start in 0..3usize,
        rest in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let start = [&b""[..], b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00"][start];
        let bytes = [start, &rest].concat();
        if let Ok(Progress::Complete { header, consumed }) = read(&bytes) {
            prop_assert!(consumed <= bytes.len());
            let _ = (header.tlvs.tls(), header.tlvs.iter().count());
        }
    }
}
