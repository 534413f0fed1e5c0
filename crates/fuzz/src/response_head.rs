//! Heads of answers. The first byte of the input says what was asked.

use subak_message::h1::{
    Asked, ConnectionOut, Progress, ResponseOut, parse_response, write_response_head,
};
use subak_message::{BodyLength, HeadLimits, Known, Method, ResponseHead};

use crate::plain::{Plain, lasting};

/// Checks one input.
pub fn check(data: &[u8]) {
    let Some((&kind, data)) = data.split_first() else { return };
    let method = [Method::Get, Method::Head, Method::Post, Method::Connect][usize::from(kind & 3)];
    let asked = Asked { method, upgrade: kind & 4 != 0 };
    let limits = HeadLimits { max_bytes: 2048, max_fields: 24, ..HeadLimits::default() };
    let mut whole = ResponseHead::default();
    let result = parse_response(data, &limits, &asked, &mut whole);
    let mut head = ResponseHead::default();
    for cut in crate::cuts(data.len()) {
        match (parse_response(&data[..cut], &limits, &asked, &mut head), result) {
            (Ok(Progress::Partial), Ok(Progress::Complete { consumed, .. })) => {
                assert!(cut < consumed, "complete, but partial with all of it");
            }
            (Ok(Progress::Partial), _) => {}
            (Ok(complete), result) => {
                assert_eq!(Ok(complete), result, "cut at {cut}");
                assert_eq!(head, whole, "cut at {cut}");
            }
            (Err(early), result) => assert!(result.is_err(), "{early} only when cut at {cut}"),
        }
    }
    let Ok(Progress::Complete { consumed, framing }) = result else { return };
    let text = &data[..consumed];
    let plain = Plain::read(text);
    let said = plain.framing();
    let bodiless = matches!(whole.status, 100..200 | 204 | 304) || method == Method::Head;
    let expected = if bodiless || framing.upgrade {
        BodyLength::None
    } else if said == BodyLength::None {
        BodyLength::UntilClose
    } else {
        said
    };
    assert_eq!(framing.body, expected);
    assert!(whole.status != 101 || asked.upgrade, "a switch that was not asked for");
    assert!(!framing.keep_alive || framing.body != BodyLength::UntilClose);

    let tunnel = framing.upgrade && whole.status == 101;
    let connection = if tunnel { ConnectionOut::Upgrade } else { ConnectionOut::Implied };
    let mut written = Vec::new();
    write_response_head(&mut written, &whole, &ResponseOut { body: framing.body, connection });
    let limits = HeadLimits { max_bytes: 4096, max_fields: 32, ..limits };
    let mut again = ResponseHead::default();
    let Ok(Progress::Complete { consumed, framing: framing_again }) =
        parse_response(&written, &limits, &asked, &mut again)
    else {
        panic!("what was forwarded is refused: {}", written.escape_ascii())
    };
    assert_eq!(consumed, written.len(), "more than one message was forwarded");
    assert_eq!((framing_again.body, framing_again.upgrade), (framing.body, framing.upgrade));
    if !whole.fields.has(Known::Connection) {
        assert_eq!(lasting(&again.fields), lasting(&whole.fields), "fields or their order");
    }
    assert_eq!((again.status, again.reason()), (whole.status, whole.reason()));
}
