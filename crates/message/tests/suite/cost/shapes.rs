//! Work that a head makes, by its shape: no shape of twice the size may make much more than twice the
//! work, and none much more than an ordinary head of its size.
//!
//! [`SHAPES`] are heads of the kinds that parsers are attacked with: lists of empty members, fields that
//! a `Connection` names, paths of dots, cookies, chunks of a byte. [`serve`] does with one what a proxy
//! does: it reads the head, looks at its path and cookies, writes it for either protocol.

use subak_message::h1::{ConnectionOut, Progress, RequestOut, parse_request, write_request_head};
use subak_message::{Fields, HeadLimits, Known, RequestHead, h2};

/// A head or body of about so many bytes.
pub(crate) type Shape = fn(usize) -> Vec<u8>;

/// Every shape by its name. The first is ordinary.
pub(crate) const SHAPES: &[(&str, Shape)] = &[
    ("ordinary", |size| many(size, |at| format!("X-Field-{at}: {}", "v".repeat(300)))),
    ("empty members of Connection", |size| one("Connection", ",", size)),
    ("spaces in Connection", |size| one("Connection", " ", size - 1)),
    ("names in Connection", |size| one("Connection", "X-A,", size)),
    ("a Connection as long as it may be", |size| {
        let names: Vec<String> = (0..62).map(|at| format!("X-Name-{at:06}")).collect();
        many(size, |at| match at {
            0 => format!("Connection: {}", names.join(",")),
            _ => format!("X-{at}: {}", "v".repeat(300)),
        })
    }),
    ("Connection on many lines", |size| many(size, |_| "Connection: X-A".to_owned())),
    ("empty members of TE", |size| one("TE", ",", size)),
    ("empty members of Upgrade", |size| one("Connection: upgrade\r\nUpgrade", ",", size)),
    ("empty members of Transfer-Encoding", |size| one("Transfer-Encoding", ",", size)),
    ("codings", |size| one("Transfer-Encoding", "gzip,", size)),
    ("empty members of X-Forwarded-For", |size| one("X-Forwarded-For", ",", size)),
    ("empty members of Forwarded", |size| one("Forwarded", ",;", size)),
    ("expectations", |size| one("Expect", ",", size)),
    ("digits of Content-Length", |size| one("Content-Length", "0", size)),
    ("empty cookies", |size| one("Cookie", ";", size)),
    ("cookies of one name", |size| one("Cookie", "a=b;", size)),
    ("cookies on many lines", |size| many(size, |_| "Cookie: a=b".to_owned())),
    ("names of a letter", |size| many(size, |_| "a:".to_owned())),
    ("names with an underscore", |size| many(size, |_| format!("x_{}: y", "a".repeat(300)))),
    ("a long name", |size| {
        format!("GET / HTTP/1.1\r\nHost: a\r\n{}: b\r\n\r\n", "n".repeat(size)).into()
    }),
    ("slashes", |size| path("/", size)),
    ("segments", |size| path("/a", size)),
    ("dots", |size| path("/.", size)),
    ("segments that go again", |size| path("/a/..", size)),
    ("many segments, then none", |size| {
        format!(
            "GET {}{} HTTP/1.1\r\nHost: a\r\n\r\n",
            "/a".repeat(size / 5),
            "/..".repeat(size / 5)
        )
        .into()
    }),
    ("parameters", |size| path("/;", size)),
    ("encoded parameters", |size| path("/%3b", size)),
    ("semicolons", |size| path(";", size)),
    ("escapes", |size| path("%41", size)),
    ("encoded percents", |size| path("%25", size)),
    ("broken escapes", |size| path("%", size)),
    ("a long host", |size| {
        format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "a.".repeat(size / 2)).into()
    }),
    ("a long method", |size| format!("{} / HTTP/1.1\r\n\r\n", "M".repeat(size)).into()),
    ("empty lines", |size| b"\r\n".repeat(size / 2)),
    ("a line that does not end", |size| format!("GET /{}", "a".repeat(size)).into()),
];

/// One field whose value is a repeated part.
fn one(name: &str, part: &str, size: usize) -> Vec<u8> {
    let value = part.repeat(size / part.len());
    // A value does not begin or end in a space.
    format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: a{value}a\r\n\r\n").into()
}

/// As many fields as fit, 100 at most.
fn many(size: usize, field: impl Fn(usize) -> String) -> Vec<u8> {
    let mut head = "GET / HTTP/1.1\r\nHost: a\r\n".to_owned();
    for at in 0..98 {
        let line = field(at) + "\r\n";
        if head.len() + line.len() > size {
            break;
        }
        head += &line;
    }
    (head + "\r\n").into()
}

/// A path of a repeated part.
fn path(part: &str, size: usize) -> Vec<u8> {
    let path = part.repeat(size / part.len());
    format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into()
}

/// Reads a head and writes it for an endpoint of either protocol; bytes written, 0 where it is refused.
#[inline(never)]
pub(crate) fn serve(input: &[u8], head: &mut RequestHead, out: &mut Vec<u8>) -> usize {
    out.clear();
    let limits = HeadLimits { max_bytes: 1 << 20, ..HeadLimits::default() };
    let Ok(Progress::Complete { framing, .. }) = parse_request(input, &limits, head) else {
        return 0;
    };
    let looked_at = head.compared_path().len() + head.fields.cookies(b"session").count();
    head.fields.remove_cookie(b"session");
    let upgrade = framing.upgrade;
    let to = RequestOut {
        target: head.forward_target(),
        default_host: b"endpoint",
        body: framing.body,
        connection: if upgrade { ConnectionOut::Upgrade } else { ConnectionOut::Implied },
        expect_continue: framing.expect_continue,
    };
    write_request_head(out, head, &to);
    let onward: usize = h2::onward(&head.fields).map(|field| field.name.len()).sum();
    let forwarded: Fields = head.fields.clone();
    looked_at + out.len() + onward + usize::from(forwarded.has(Known::Cookie))
}
