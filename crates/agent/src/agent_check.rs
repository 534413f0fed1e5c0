//! The one line that HAProxy's agent-check asks for.
//!
//! Whoever connects gets a percentage and the end of the connection: `75%` is the share of the
//! configured weight that the endpoint should have, here 1 − L of the weigher, in whole percent and
//! at least 1, because 0 would mean that it is to get nothing at all.
//! Source: HAProxy's configuration manual, `agent-check`.

use std::time::Duration;

use subak_balance::weigher::{Coefficients, PerResource, Ppm};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is read of an asker that sends something first, as it may, and is ignored.
const MAX_IGNORED_BYTES: usize = 4096;

/// The line; none when no resource is known that counts.
pub(crate) fn line(used: &PerResource<Option<Ppm>>, load: &Coefficients) -> Option<String> {
    let load = load.mean(used)?.get();
    let free = (Ppm::ONE.get() - load + 5_000) / 10_000;
    Some(format!("{}%\n", free.max(1)))
}

/// Answers one connection; without a line it just ends.
pub(crate) async fn answer(mut stream: TcpStream, line: Option<String>, limit: Duration) {
    let exchange = async {
        stream.write_all(line.unwrap_or_default().as_bytes()).await?;
        stream.shutdown().await?;
        // A connection closed with something unread is reset, and the line might be lost.
        let mut ignored = [0; 512];
        let mut left = MAX_IGNORED_BYTES;
        while left > 0 {
            match stream.read(&mut ignored).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        Ok::<(), std::io::Error>(())
    };
    // It has got its line or will ask again: nothing follows from a failure.
    let _ = tokio::time::timeout(limit, exchange).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_what_is_free_in_whole_percent_and_never_zero() {
        let line = |parts| {
            let used = PerResource { cpu: Some(Ppm::saturating(parts)), ..Default::default() };
            line(&used, &Coefficients::DEFAULT).unwrap()
        };
        assert_eq!(line(0), "100%\n");
        assert_eq!(line(250_000), "75%\n");
        assert_eq!(line(254_999), "75%\n");
        assert_eq!(line(255_001), "74%\n");
        assert_eq!(line(994_000), "1%\n");
        assert_eq!(line(1_000_000), "1%\n");
    }

    #[test]
    fn without_anything_that_counts_there_is_no_line() {
        let cpu = PerResource { cpu: 1, ..Default::default() };
        let coefficients = Coefficients::new(cpu).unwrap();
        let used = PerResource { disk: Some(Ppm::ONE), ..Default::default() };
        assert_eq!(line(&used, &coefficients), None);
    }
}
