//! The field names that something in Subak asks for, told apart once when a head is read.
//!
//! Classification costs a table look-up and one comparison: a name's length, first and last byte
//! select the only candidate (a perfect hash, proven when this crate compiles).

use crate::spelling::is_alike;

macro_rules! known {
    ($($name:ident $text:literal)*) => {
        /// A field name, classified.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Known {
            /// A name that has no entry here.
            Other,
            /// A second spelling of a framing, routing or forwarding name, such as `Content_Length`
            /// or `X.Real.IP`: CGI-style endpoints read both as one ([`is_alike`](crate::is_alike)),
            /// so the serialisers never forward such a field.
            Lookalike,
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl Known {
            /// Every classified name (neither [`Known::Other`] nor [`Known::Lookalike`]).
            pub const ALL: &[Known] = &[$(Known::$name,)*];

            /// The name as it is usually written; empty for [`Known::Other`] and
            /// [`Known::Lookalike`].
            pub const fn name(self) -> &'static str {
                match self {
                    Known::Other | Known::Lookalike => "",
                    $(Known::$name => $text,)*
                }
            }

            /// The name as HTTP/2 writes it, in lower case; empty for [`Known::Other`] and
            /// [`Known::Lookalike`].
            pub const fn lower_name(self) -> &'static str {
                match self {
                    Known::Other | Known::Lookalike => "",
                    $(Known::$name => const {
                        const LOWER: [u8; $text.len()] = lower($text);
                        match std::str::from_utf8(&LOWER) {
                            Ok(name) => name,
                            // Not with names in ASCII, which these are.
                            Err(_) => "",
                        }
                    },)*
                }
            }
        }
    };
}

known! {
    Host "Host"
    Connection "Connection"
    KeepAlive "Keep-Alive"
    ProxyConnection "Proxy-Connection"
    TransferEncoding "Transfer-Encoding"
    ContentLength "Content-Length"
    Te "TE"
    Trailer "Trailer"
    Upgrade "Upgrade"
    Http2Settings "HTTP2-Settings"
    Expect "Expect"
    Date "Date"
    Server "Server"
    Via "Via"
    XForwardedFor "X-Forwarded-For"
    XForwardedProto "X-Forwarded-Proto"
    XForwardedHost "X-Forwarded-Host"
    XForwardedPrefix "X-Forwarded-Prefix"
    XRealIp "X-Real-IP"
    Forwarded "Forwarded"
    RetryAfter "Retry-After"
    Location "Location"
    ContentType "Content-Type"
    ContentEncoding "Content-Encoding"
    ContentRange "Content-Range"
    Cookie "Cookie"
    SetCookie "Set-Cookie"
    UserAgent "User-Agent"
    Accept "Accept"
    AcceptEncoding "Accept-Encoding"
    AcceptLanguage "Accept-Language"
    AcceptRanges "Accept-Ranges"
    Authorization "Authorization"
    ProxyAuthorization "Proxy-Authorization"
    ProxyAuthenticate "Proxy-Authenticate"
    WwwAuthenticate "WWW-Authenticate"
    CacheControl "Cache-Control"
    ETag "ETag"
    Expires "Expires"
    LastModified "Last-Modified"
    IfNoneMatch "If-None-Match"
    IfModifiedSince "If-Modified-Since"
    IfMatch "If-Match"
    IfRange "If-Range"
    Range "Range"
    Referer "Referer"
    Origin "Origin"
    Age "Age"
    Vary "Vary"
    Allow "Allow"
    MaxForwards "Max-Forwards"
    XRequestId "X-Request-ID"
    SecWebSocketKey "Sec-WebSocket-Key"
    SecWebSocketAccept "Sec-WebSocket-Accept"
    SecWebSocketVersion "Sec-WebSocket-Version"
    StrictTransportSecurity "Strict-Transport-Security"
    ServerTiming "Server-Timing"
    AltSvc "Alt-Svc"
    Pragma "Pragma"
}

/// The candidate for each hash; 255 where there is none.
static CANDIDATES: [u8; 256] = candidates();

/// The longest known name fits into so many words of eight bytes.
const WORDS: usize = 4;
const WINDOW: usize = 8 * WORDS;

/// Each name in lower case, the bit of case of its letters, and 0xff for each of its bytes, as
/// little-endian words padded with zeros.
struct Row {
    lower: [u64; WORDS],
    case: [u64; WORDS],
    mask: [u64; WORDS],
    len: usize,
    known: Known,
}

static ROWS: [Row; Known::ALL.len()] = rows();

/// The bit of each name in a set of names is its number, so there may be 64 of them.
const _: () = assert!(Known::ALL.len() + 2 <= 64);

const fn lower<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut lower = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        lower[at] = name.as_bytes()[at].to_ascii_lowercase();
        at += 1;
    }
    lower
}

const fn slot(name: &[u8]) -> usize {
    let first = (name[0] | 0x20) as usize;
    let last = (name[name.len() - 1] | 0x20) as usize;
    (name.len() + 3 * first + 222 * last) & 255
}

const fn candidates() -> [u8; 256] {
    let mut table = [u8::MAX; 256];
    let mut at = 0;
    while at < Known::ALL.len() {
        let slot = slot(Known::ALL[at].name().as_bytes());
        assert!(table[slot] == u8::MAX, "two names share a slot: choose other factors");
        table[slot] = at as u8;
        at += 1;
    }
    table
}

const fn rows() -> [Row; Known::ALL.len()] {
    let mut rows = [const {
        Row { lower: [0; WORDS], case: [0; WORDS], mask: [0; WORDS], len: 0, known: Known::Other }
    }; Known::ALL.len()];
    let mut at = 0;
    while at < rows.len() {
        let name = Known::ALL[at].name().as_bytes();
        rows[at].len = name.len();
        rows[at].known = Known::ALL[at];
        let mut byte = 0;
        while byte < name.len() {
            let shift = 8 * (byte % 8);
            rows[at].lower[byte / 8] |= (name[byte].to_ascii_lowercase() as u64) << shift;
            if name[byte].is_ascii_alphabetic() {
                rows[at].case[byte / 8] |= 0x20 << shift;
            }
            rows[at].mask[byte / 8] |= 0xff << shift;
            byte += 1;
        }
        at += 1;
    }
    rows
}

impl Known {
    /// Classifies a field name, in any case.
    pub fn classify(name: &[u8]) -> Known {
        let mut window = [0; WINDOW];
        match window.get_mut(..name.len()) {
            Some(start) => start.copy_from_slice(name),
            None => return Known::Other,
        }
        Known::classify_window(&window, name.len())
    }

    /// Classifies the name `text[start..start + len]`; without a copy where `text` goes on behind it.
    #[inline]
    pub(crate) fn classify_in(text: &[u8], start: usize, len: usize) -> Known {
        match text.get(start..).and_then(|rest| rest.first_chunk()) {
            Some(window) => Known::classify_window(window, len),
            None => Known::classify(&text[start..start + len]),
        }
    }

    /// Classifies the first `len` bytes. Compares 32 bytes at once: what is neither the candidate's
    /// letter in either case nor its other byte differs after the masks.
    #[inline]
    fn classify_window(window: &[u8; WINDOW], len: usize) -> Known {
        if len == 0 || len > WINDOW {
            return Known::Other;
        }
        let candidate = CANDIDATES[slot(&window[..len])];
        let Some(row) = ROWS.get(usize::from(candidate)) else { return Known::Other };
        if row.len != len {
            return Known::Other;
        }
        let (words, _) = window.as_chunks::<8>();
        let mut difference = 0;
        for (at, word) in words.iter().enumerate() {
            difference |=
                ((u64::from_le_bytes(*word) | row.case[at]) & row.mask[at]) ^ row.lower[at];
        }
        if difference == 0 { row.known } else { row.known.or_imitated(&window[..len]) }
    }

    /// What a name is that shares this one's slot and is not this one.
    #[cold]
    #[inline(never)]
    fn or_imitated(self, name: &[u8]) -> Known {
        if self.is_guarded() && is_alike(name, self.name().as_bytes()) {
            Known::Lookalike
        } else {
            Known::Other
        }
    }

    /// Names that frame, route or vouch for a message: nothing may imitate them, no `Connection`
    /// field may remove them, and no trailer may carry them.
    pub const fn is_guarded(self) -> bool {
        matches!(
            self,
            Known::Host
                | Known::ContentLength
                | Known::TransferEncoding
                | Known::Forwarded
                | Known::Via
                | Known::XForwardedFor
                | Known::XForwardedProto
                | Known::XForwardedHost
                | Known::XForwardedPrefix
                | Known::XRealIp
        )
    }

    /// Whether trailers may have this name. They may not frame, route, authenticate, control or describe
    /// the body's form (RFC 9110, 6.5.1): endpoints that merge them into the head would believe them.
    pub const fn may_trail(self) -> bool {
        !self.is_guarded()
            && !self.is_hop_by_hop()
            && !matches!(
                self,
                Known::Lookalike
                    | Known::Trailer
                    | Known::Expect
                    | Known::ContentType
                    | Known::ContentEncoding
                    | Known::ContentRange
                    | Known::Cookie
                    | Known::SetCookie
                    | Known::Authorization
                    | Known::ProxyAuthorization
                    | Known::ProxyAuthenticate
                    | Known::WwwAuthenticate
                    | Known::CacheControl
                    | Known::MaxForwards
                    | Known::Range
                    | Known::IfMatch
                    | Known::IfNoneMatch
                    | Known::IfModifiedSince
                    | Known::IfRange
                    | Known::Age
                    | Known::Expires
                    | Known::Date
                    | Known::Location
                    | Known::RetryAfter
                    | Known::Vary
            )
    }

    /// Whether a request's `Connection` field may name this field as one that concerns the connection
    /// alone (RFC 9110, 7.6.1). What endpoints read of a request it may not.
    pub(crate) const fn is_nominable(self) -> bool {
        self.is_hop_by_hop()
            || matches!(
                self,
                Known::Other
                    | Known::Lookalike
                    | Known::Trailer
                    | Known::ProxyAuthorization
                    | Known::ProxyAuthenticate
            )
    }

    /// Names that concern one connection only and are never forwarded as received (RFC 9110,
    /// 7.6.1). `Trailer` and `Upgrade` have rules of their own.
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Known::Connection
                | Known::KeepAlive
                | Known::ProxyConnection
                | Known::TransferEncoding
                | Known::Te
                | Known::Upgrade
                | Known::Http2Settings
        )
    }

    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case() {
        for &known in Known::ALL {
            let name = known.name();
            assert_eq!(Known::classify(name.as_bytes()), known);
            assert_eq!(Known::classify(name.to_ascii_lowercase().as_bytes()), known);
            assert_eq!(Known::classify(name.to_ascii_uppercase().as_bytes()), known);
        }
    }

    #[test]
    fn a_name_inside_a_head_is_classified_alike() {
        let names = Known::ALL.iter().map(|known| known.name().to_owned());
        let others =
            ["Content_Length", "X-Foo", "Hos", "H", "contenu-length", "x".repeat(40).leak()];
        for name in names.chain(others.map(str::to_owned)) {
            for name in [name.to_ascii_uppercase(), name.to_ascii_lowercase(), name] {
                for rest in [": value\r\n\r\n", ": a much longer value that fills the row\r\n\r\n"]
                {
                    let text = format!("\r\n{name}{rest}");
                    let found = Known::classify_in(text.as_bytes(), 2, name.len());
                    assert_eq!(found, Known::classify(name.as_bytes()), "{text}");
                }
            }
        }
    }

    #[test]
    fn no_byte_but_a_letter_in_other_case_stands_for_another() {
        for &known in Known::ALL {
            let name = known.name().as_bytes();
            for at in 0..name.len() {
                for byte in 0..=255 {
                    let mut near = name.to_vec();
                    near[at] = byte;
                    let same = byte.eq_ignore_ascii_case(&name[at]);
                    assert_eq!(Known::classify(&near) == known, same, "{}", near.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn near_misses_are_other() {
        for name in ["", "H", "Hosts", "Hos", "Content-Lengti", "X-Foo", "Content-Lenggth", "TEE"] {
            assert_eq!(Known::classify(name.as_bytes()), Known::Other, "{name}");
        }
    }

    #[test]
    fn other_spellings_of_guarded_names_are_told_from_the_real_name() {
        for name in [
            "Content_Length",
            "TRANSFER_ENCODING",
            "x_forwarded_for",
            "X-Forwarded_For",
            "x_real_ip",
            "X.Real.IP",
            "X-Forwarded~Proto",
        ] {
            assert_eq!(Known::classify(name.as_bytes()), Known::Lookalike, "{name}");
        }
        for name in ["User_Agent", "content_type", "my_header"] {
            assert_eq!(Known::classify(name.as_bytes()), Known::Other, "{name}");
        }
    }
}
