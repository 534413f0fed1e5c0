//! Slow clients: five hundred who send a byte of their head now and then, beside others who are served
//! as before.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{ALL_AT_ONCE, stage};
use crate::cell::{Cell, Measured};
use crate::tools::generator::{self, Clients};
use crate::world::{Kind, World};

const SLOW: usize = 500;
/// Others, in requests a second.
const RATE: f64 = 100.0;
/// The others alone.
const ALONE: Duration = Duration::from_secs(4);
/// With the slow ones: longer than the ten seconds that a head may take.
const TOGETHER: Duration = Duration::from_secs(13);
/// From one byte to the next.
const EVERY: Duration = Duration::from_millis(500);

pub(super) fn clients() -> Cell {
    let mut stage = stage(Kind::Subak, "round_robin", ALL_AT_ONCE);
    // It is the head that is slow.
    stage.tls = false;
    Cell {
        id: "P1/security/slow_clients/ours#1".to_owned(),
        takes: ALONE + TOGETHER + Duration::from_secs(3),
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            let others = Clients::of(stage.front, Vec::new());
            let alone = generator::at_rate(&others, RATE, ALONE)?;
            let (together, cut_off) = thread::scope(|scope| {
                let slow = scope.spawn(|| slowly(stage.front));
                let together = generator::at_rate(&others, RATE, TOGETHER);
                let cut_off = slow.join().map_err(|_| "the slow clients' thread ended".to_owned());
                together.and_then(|together| Ok((together, cut_off??)))
            })?;
            let of = |measured: &Measured, name: &str| {
                measured.numbers.get(name).copied().unwrap_or(f64::NAN)
            };
            let mut measured = Measured::default()
                .number("p95_alone_ms", of(&alone, "p95_ms"))
                .number("p95_together_ms", of(&together, "p95_ms"))
                .number("failed", of(&alone, "failed") + of(&together, "failed"))
                .number("answered", of(&together, "answered"))
                .number("slow", SLOW as f64)
                .number("cut_off", cut_off as f64)
                .counts("hits", running.hits());
            measured.invalid = together.invalid.or(alone.invalid);
            Ok(measured)
        }),
    }
}

/// How many of the slow ones lost their connection while the others were served.
fn slowly(front: SocketAddr) -> Result<usize, String> {
    let begun = Instant::now();
    let connect = |_| {
        let stream = TcpStream::connect_timeout(&front, Duration::from_secs(5))?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    let streams = (0..SLOW).map(connect).collect::<std::io::Result<Vec<TcpStream>>>();
    let mut streams = streams.map_err(|error| format!("{front}: {error}"))?;
    let head = b"GET / HTTP/1.1\r\nHost: slow\r\nX-Slow: ";
    for turn in 0.. {
        if begun.elapsed() > TOGETHER {
            break;
        }
        let byte = [head.get(turn).copied().unwrap_or(b'x')];
        streams.retain_mut(|stream| stream.write_all(&byte).is_ok() && !has_ended(stream));
        thread::sleep(EVERY);
    }
    Ok(SLOW - streams.len())
}

/// Whether the other side has closed; what it says before that is thrown away.
fn has_ended(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 512];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}
