//! Who asks? What is changed is logged and shown with its name.

use std::sync::Arc;

use tokio::net::UnixStream;

/// Bytes of /etc/passwd that are looked at.
const PASSWD_BYTES: u64 = 1024 * 1024;

/// Who is at the other end of the unix socket, as the kernel says: `uid 0 (root)`.
pub(crate) fn at_socket(stream: &UnixStream) -> Arc<str> {
    let Ok(credentials) = stream.peer_cred() else { return "somebody at the socket".into() };
    let uid = credentials.uid();
    match name_of(uid) {
        Some(name) => format!("uid {uid} ({name})").into(),
        None => format!("uid {uid}").into(),
    }
}

/// Who has the token: all that is known is the address.
pub(crate) fn at_address(address: std::net::IpAddr) -> Arc<str> {
    format!("token from {}", address.to_canonical()).into()
}

fn name_of(uid: u32) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open("/etc/passwd").ok()?;
    file.take(PASSWD_BYTES).read_to_string(&mut text).ok()?;
    name_in(&text, uid).map(str::to_owned)
}

fn name_in(passwd: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    let user = |line: &str| line.split(':').nth(2) == Some(&uid);
    let name = passwd.lines().find(|line| user(line))?.split(':').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn a_user_is_found_by_number_and_odd_names_are_not_shown() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nsubak:x:101:101::/:/bin/false\nx\u{1b}:x:7:7::/:\n";
        assert_eq!(name_in(passwd, 0), Some("root"));
        assert_eq!(name_in(passwd, 101), Some("subak"));
        assert_eq!(name_in(passwd, 10), None);
        assert_eq!(name_in(passwd, 7), None);
        assert_eq!(name_in("", 0), None);
    }
}
