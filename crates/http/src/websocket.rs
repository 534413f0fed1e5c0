//! WebSocket's handshake, where Subak takes part in it.
//!
//! Between an HTTP/1.1 client and an HTTP/1.1 endpoint it takes none: what both say goes on unchanged.
//! An HTTP/2 stream becomes a WebSocket by an extended CONNECT (RFC 8441), which has neither HTTP/1's
//! `Upgrade` nor its key and proof. In the middle every handshake has HTTP/1's form, so whoever speaks
//! HTTP/2 has that form made for it: a client's key is made and the proof looked at, an endpoint's proof
//! is given in its place:
//!
//! ```text
//! proof = base64(SHA-1(key ‖ "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))       (RFC 6455, 4.2.2)
//! ```
//!
//! It proves that the other side has understood what it was asked for, and nothing more: SHA-1's
//! weakness does not matter.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use subak_message::{
    BadField, Fault, HeadError, Known, Method, RequestHead, ResponseHead, Version,
};

use crate::failure::Failure;

/// What a WebSocket is called in `Upgrade` and in `:protocol`.
pub(crate) const PROTOCOL: &str = "websocket";

/// What a key is hashed with (RFC 6455, 1.3).
const PROOF: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The characters of 16 and of 20 bytes in base64.
const KEY_LENGTH: usize = 24;
pub(crate) const PROOF_LENGTH: usize = 28;

/// Makes HTTP/1's handshake of an extended CONNECT; the head has method GET already. A key the client
/// sent means nothing there and is replaced.
///
/// # Errors
/// None, as long as constants and base64 can stand in a field.
pub(crate) fn begin(head: &mut RequestHead, random: [u64; 2]) -> Result<(), BadField> {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&random[0].to_be_bytes());
    key[8..].copy_from_slice(&random[1].to_be_bytes());
    head.fields.set_known(Known::Upgrade, PROTOCOL.as_bytes())?;
    head.fields.set_known(Known::SecWebSocketKey, &base64::<KEY_LENGTH>(&key))
}

/// Looks whether a request to switch protocols can be made an extended CONNECT.
///
/// # Errors
/// It is for another protocol than WebSocket, or has no key that could be answered.
pub(crate) fn can_go_on(asked: &RequestHead) -> Result<(), Failure> {
    let mut offered =
        asked.fields.get_all(Known::Upgrade).flat_map(|value| value.split(|b| *b == b','));
    let websocket = offered.any(|one| one.trim_ascii().eq_ignore_ascii_case(PROTOCOL.as_bytes()));
    if !websocket || asked.method != Method::Get {
        return Err(Failure::NoSwitch { websocket: false });
    }
    match asked.fields.get(Known::SecWebSocketKey).map(<[u8]>::len) {
        Some(KEY_LENGTH) => Ok(()),
        _ => Err(Failure::BadHead(HeadError { fault: Fault::WebSocketKey, offset: 0 })),
    }
}

/// Makes HTTP/1's answer of a CONNECT that has succeeded.
///
/// # Errors
/// None, as long as constants and base64 can stand in a field.
pub(crate) fn switch(
    answer: &mut ResponseHead,
    proof: &[u8; PROOF_LENGTH],
) -> Result<(), BadField> {
    answer.status = 101;
    answer.fields.remove(Known::ContentLength);
    answer.fields.set_known(Known::Upgrade, PROTOCOL.as_bytes())?;
    answer.fields.set_known(Known::SecWebSocketAccept, proof)
}

/// Whether the endpoint has proved that it speaks WebSocket, where the client leaves that to Subak.
pub(crate) fn is_proven(asked: &RequestHead, answer: &ResponseHead) -> bool {
    let Some(key) = asked.fields.get(Known::SecWebSocketKey) else { return true };
    asked.version != Version::Http2
        || answer.fields.get(Known::SecWebSocketAccept) == Some(&proof(key)[..])
}

/// The proof that a key was read.
pub(crate) fn proof(key: &[u8]) -> [u8; PROOF_LENGTH] {
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key);
    digest.update(PROOF);
    base64(digest.finish().as_ref())
}

/// `LENGTH` characters, padding included: 4 for every 3 bytes or a part of them.
fn base64<const LENGTH: usize>(bytes: &[u8]) -> [u8; LENGTH] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = [b'='; LENGTH];
    for (three, four) in bytes.chunks(3).zip(text.chunks_mut(4)) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, character) in four.iter_mut().enumerate().take(three.len() + 1) {
            *character = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_that_of_the_standards_example() {
        assert_eq!(&proof(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        assert_eq!(&base64::<8>(b"foobar"), b"Zm9vYmFy");
        assert_eq!(&base64::<8>(b"fooba"), b"Zm9vYmE=");
        assert_eq!(&base64::<8>(b"foob"), b"Zm9vYg==");
        assert_eq!(&base64::<4>(&[0xfb, 0xff, 0xbf]), b"+/+/");
    }

    #[test]
    fn only_an_http2_clients_proof_is_looked_at_here() {
        let mut asked = RequestHead::default();
        asked.version = Version::Http2;
        begin(&mut asked, [1, 2]).expect("a handshake");
        assert_eq!(
            asked.fields.get(Known::SecWebSocketKey),
            Some(&b"AAAAAAAAAAEAAAAAAAAAAg=="[..])
        );
        let mut answer = ResponseHead::new();
        answer.begin(101);
        assert!(!is_proven(&asked, &answer));
        let right = proof(b"AAAAAAAAAAEAAAAAAAAAAg==");
        answer.fields.push_known(Known::SecWebSocketAccept, &right).expect("a field");
        assert!(is_proven(&asked, &answer));
        answer.fields.set_known(Known::SecWebSocketAccept, b"wrong").expect("a field");
        assert!(!is_proven(&asked, &answer));
        asked.version = Version::Http11;
        assert!(is_proven(&asked, &answer));
    }

    #[test]
    fn only_a_websocket_with_a_key_becomes_a_connect() {
        let asked = |upgrade: &[u8], key: Option<&[u8]>| {
            let mut asked = RequestHead::default();
            asked.fields.set_known(Known::Upgrade, upgrade).expect("a field");
            if let Some(key) = key {
                asked.fields.set_known(Known::SecWebSocketKey, key).expect("a field");
            }
            can_go_on(&asked).err().and_then(|failure| failure.status())
        };
        let key: Option<&[u8]> = Some(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(asked(b"websocket", key), None);
        assert_eq!(asked(b"foo/2, WebSocket", key), None);
        assert_eq!(asked(b"websockets", key), Some(501));
        assert_eq!(asked(b"websocket", None), Some(400));
        assert_eq!(asked(b"websocket", Some(b"short")), Some(400));
    }
}
