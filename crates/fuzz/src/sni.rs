//! A client's first bytes on a port of TLS: whatever they are cut into, the same name, the same offer of
//! protocols and the same certificate as a plain reading of the bytes says.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use subak_certificate::{Certificate, Pem};
use subak_net::tls::{Greeted, Greeting, Origin, ServerTls, TlsOptions, UnknownName, Version, Way};

/// Listeners with the same certificates: `example.com`, `*.example.com`; `other.example`.
struct Listeners {
    /// The first certificate is for unknown names too.
    lenient: ServerTls,
    /// Unknown names are refused.
    strict: ServerTls,
    /// A challenge is pending.
    challenged: ServerTls,
}

static LISTENERS: LazyLock<Listeners> = LazyLock::new(|| {
    let pem = |contents: &'static [u8]| Pem { path: "x.pem".into(), contents: contents.into() };
    let load = |chain, key| Certificate::load(&pem(chain), &pem(key), None).expect("a certificate");
    let certificates = vec![
        load(
            include_bytes!("../../certificate/testdata/site.pem"),
            include_bytes!("../../certificate/testdata/site.key"),
        ),
        load(
            include_bytes!("../../certificate/testdata/other.pem"),
            include_bytes!("../../certificate/testdata/other.key"),
        ),
    ];
    let listener = |unknown_name| {
        let options = TlsOptions {
            certificates: certificates.clone(),
            unknown_name,
            protocols: vec![b"h2", b"http/1.1"],
            min_version: Version::Tls12,
            tickets: Some(Duration::from_secs(3600)),
            client: None,
        };
        ServerTls::new(options, None).expect("a listener")
    };
    let challenged = listener(UnknownName::Refuse);
    challenged.challenges().set([("example.com".into(), certificates[0].key().clone())]);
    Listeners {
        lenient: listener(UnknownName::Default),
        strict: listener(UnknownName::Refuse),
        challenged,
    }
});

/// What was made of the bytes.
#[derive(PartialEq, Eq, Debug)]
enum Said {
    Partly,
    Cleartext,
    /// Told by this alert; `None` where a hello is longer than any may be.
    Wrong(Option<u8>),
    Hello {
        name: Option<String>,
        alpn: Vec<Vec<u8>>,
    },
}

/// Checks one input.
pub fn check(data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let said = read(data, data.len());
    // However it is cut.
    for piece in [1, 2, 5, 100] {
        assert_eq!(read(data, piece), said, "in pieces of {piece}");
    }
    let is_cleartext = data[0].is_ascii_alphabetic();
    assert_eq!(said == Said::Cleartext, is_cleartext);
    if let (false, Some(alert)) = (is_cleartext, of_header(data)) {
        assert_eq!(said, Said::Wrong(Some(alert)), "by the first record's header");
    }
    let (Said::Hello { name, alpn }, Some(plain)) = (said, hello(data)) else { return };
    if let Some(name) = &name {
        let asked = plain.name.as_deref().unwrap_or_default();
        assert!(name.as_bytes().eq_ignore_ascii_case(asked), "{name}, {asked:?}");
    } else {
        assert!(!plain.name.is_some_and(|name| is_plain(&name)), "a name was passed over");
    }
    assert_eq!(alpn, plain.alpn);
}

/// Reads the bytes in pieces of this size; checks what becomes of a hello.
fn read(data: &[u8], piece: usize) -> Said {
    let mut greeting = Greeting::default();
    for mut piece in data.chunks(piece) {
        while !piece.is_empty() {
            let Ok((count, greeted)) = greeting.read(piece) else { return Said::Wrong(None) };
            piece = &piece[count..];
            match greeted {
                Greeted::Partly => assert!(count > 0, "nothing was taken, and more is wanted"),
                Greeted::Cleartext => return Said::Cleartext,
                Greeted::Wrong(_, alert) => {
                    let [0x15, 3, 3, 0, 2, 2, alert] = *alert else { panic!("{alert:?}") };
                    return Said::Wrong(Some(alert));
                }
                Greeted::Hello(accepted) => {
                    let hello = accepted.client_hello();
                    let name = hello.server_name().map(str::to_owned);
                    let alpn: Vec<_> =
                        hello.alpn().into_iter().flatten().map(<[u8]>::to_vec).collect();
                    let is_challenge = alpn.iter().any(|one| one == b"acme-tls/1");
                    let Listeners { lenient, strict, challenged } = &*LISTENERS;
                    let certificates = lenient.store().of(Origin::Files);
                    let chosen = choice(name.as_deref());
                    let way = if chosen.is_some() { Way::Served } else { Way::Refused };
                    assert_eq!(lenient.way(&hello), Way::Served);
                    assert_eq!(strict.way(&hello), way);
                    let way = if is_challenge { Way::Challenge } else { way };
                    assert_eq!(challenged.way(&hello), way);
                    let found = lenient.store().find(name.as_deref(), hello.signature_schemes());
                    let expected = certificates[chosen.unwrap_or(0)].key();
                    assert!(found.is_some_and(|found| Arc::ptr_eq(&found, expected)), "{name:?}");
                    return Said::Hello { name, alpn };
                }
            }
        }
    }
    Said::Partly
}

/// The alert that the header of the first record deserves.
fn of_header(data: &[u8]) -> Option<u8> {
    let [kind, major, _, high, low, ..] = *data else { return None };
    match usize::from(high) << 8 | usize::from(low) {
        _ if kind != 0x16 => Some(10),
        _ if major != 3 => Some(70),
        0 => Some(10),
        16_385.. => Some(22),
        _ => None,
    }
}

/// Which certificate is for a name.
fn choice(name: Option<&str>) -> Option<usize> {
    let name = name?.to_ascii_lowercase();
    let labels: Vec<_> = name.strip_suffix('.').unwrap_or(&name).split('.').collect();
    match labels[..] {
        ["example", "com"] => Some(0),
        [label, "example", "com"] if !label.is_empty() => Some(0),
        ["other", "example"] => Some(1),
        _ => None,
    }
}

/// Whether nobody could doubt that it is a name.
fn is_plain(name: &[u8]) -> bool {
    name.len() < 60
        && name.split(|byte| *byte == b'.').count() > 1
        && name
            .split(|byte| *byte == b'.')
            .all(|label| !label.is_empty() && label.iter().all(u8::is_ascii_lowercase))
}

/// What a hello asks for.
struct Plain {
    name: Option<Vec<u8>>,
    alpn: Vec<Vec<u8>>,
}

/// A plain reading of a hello; none where it is not beyond doubt.
fn hello(data: &[u8]) -> Option<Plain> {
    let mut records = data;
    let mut message = Vec::new();
    while let [0x16, _, _, high, low, rest @ ..] = records {
        let length = usize::from(*high) << 8 | usize::from(*low);
        let Some(body) = rest.get(..length) else { break };
        message.extend_from_slice(body);
        records = &rest[length..];
    }
    let mut rest = message.strip_prefix(&[1])?;
    let mut message = vector(&mut rest, 3)?;
    let (_version_and_random, mut rest) = message.split_at_checked(34)?;
    let _session = vector(&mut rest, 1)?;
    let _ciphers = vector(&mut rest, 2)?;
    let _compressions = vector(&mut rest, 1)?;
    message = rest;
    let mut plain = Plain { name: None, alpn: Vec::new() };
    let Some(mut extensions) = vector(&mut message, 2) else { return Some(plain) };
    while let [high, low, rest @ ..] = extensions {
        let kind = (*high, *low);
        extensions = rest;
        let mut body = vector(&mut extensions, 2)?;
        match kind {
            (0, 0) => {
                let mut names = vector(&mut body, 2)?;
                let [0, rest @ ..] = names else { return None };
                names = rest;
                plain.name = Some(vector(&mut names, 2)?.to_vec());
                if !names.is_empty() {
                    return None;
                }
            }
            (0, 16) => {
                let mut names = vector(&mut body, 2)?;
                while !names.is_empty() {
                    plain.alpn.push(vector(&mut names, 1)?.to_vec());
                }
            }
            _ => {}
        }
    }
    Some(plain)
}

/// Takes a length of so many bytes, and what is as long as it says.
fn vector<'a>(bytes: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_at_checked(size)?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (body, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(body)
}
