//! What the paper calls security and prints nothing of: versions of TLS that are offered, and what
//! becomes of requests that two programs could read in two ways.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use subak_message::ambiguous::REQUESTS;

use super::{ALL_AT_ONCE, stage};
use crate::cell::{Cell, Measured, Need};
use crate::world::{Kind, World};

/// Versions as `openssl s_client` names them.
pub(super) const VERSIONS: [&str; 4] = ["tls1", "tls1_1", "tls1_2", "tls1_3"];
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// 1 for each version that is spoken, 0 for each that is refused.
pub(super) fn versions() -> Cell {
    let stage = stage(Kind::Subak, "round_robin", ALL_AT_ONCE);
    Cell {
        id: "P1/security/versions#1".to_owned(),
        takes: Duration::from_secs(4),
        needs: stage.needs(Some(Need::Openssl)),
        work: Box::new(move |world: &World| {
            let _running = stage.start(world)?;
            let mut measured = Measured::default();
            for version in VERSIONS {
                let mut command = Command::new(world.tool(Need::Openssl)?);
                // Level 0 lets the client offer what is long out of use.
                command.args(["s_client", "-connect", &stage.front.to_string()]).args([
                    "-cipher",
                    "ALL:@SECLEVEL=0",
                    &format!("-{version}"),
                ]);
                let said = world.say(&mut command, ANSWER_WITHIN)?.text;
                let speaks = said.contains("Cipher is ") && !said.contains("Cipher is (NONE)");
                measured = measured.number(version, f64::from(u8::from(speaks)));
            }
            Ok(measured)
        }),
    }
}

/// Each request of the list: whether it got the status that it must get, and, which is the question,
/// whether a server was hit by it.
pub(super) fn ambiguous() -> Cell {
    let mut stage = stage(Kind::Subak, "round_robin", ALL_AT_ONCE);
    // What is asked does not depend on TLS.
    stage.tls = false;
    Cell {
        id: "P1/security/ambiguous#1".to_owned(),
        takes: Duration::from_secs(10),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let (mut refused, mut other, mut reached) = (0_u32, 0_u32, 0_u32);
            let mut notes = Vec::new();
            let mut before: u64 = running.servers.hits().iter().sum();
            for request in REQUESTS.iter().filter(|request| request.status != 200) {
                let status = status(stage.front, request.bytes);
                let hits = running.servers.hits().iter().sum();
                if hits > before {
                    reached += 1;
                    notes.push(format!("{}: it reached a server", request.name));
                }
                before = hits;
                if status == Some(request.status) {
                    refused += 1;
                } else {
                    other += 1;
                    notes.push(format!("{}: {status:?}, not {}", request.name, request.status));
                }
            }
            let measured = Measured::default()
                .number("refused", f64::from(refused))
                .number("not_refused", f64::from(other))
                .number("reached", f64::from(reached));
            Ok(Measured { notes, ..measured })
        }),
    }
}

/// The status of the first answer to these bytes; none where there is none in time.
fn status(address: SocketAddr, bytes: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.write_all(bytes).ok()?;
    let mut answer = [0; 256];
    let mut length = 0;
    while length < 12 {
        match stream.read(&mut answer[length..]) {
            Ok(read @ 1..) => length += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return None,
        }
    }
    std::str::from_utf8(&answer[9..12]).ok()?.parse().ok()
}
