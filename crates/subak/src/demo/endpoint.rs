//! A tiny endpoint that can be stopped and started again: answers every GET by its name, after the
//! time it takes to think.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Where answers name their endpoint.
pub(super) const NAME_HEADER: &str = "X-Endpoint";
/// The longest request head it reads; Subak's are a tenth of it.
const MOST_HEAD_BYTES: usize = 8192;

/// One endpoint, running or stopped.
pub(super) struct Endpoint {
    name: &'static str,
    address: SocketAddr,
    delay: Duration,
    running: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Starts on a free port of loopback.
    pub(super) async fn start(name: &'static str, delay: Duration) -> io::Result<Endpoint> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut endpoint = Endpoint { name, address, delay, running: None };
        endpoint.start_again().await?;
        Ok(endpoint)
    }

    /// Listens again, where it did before.
    pub(super) async fn start_again(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.address = listener.local_addr()?;
        let body = format!("{}\n", self.name);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
             {NAME_HEADER}: {}\r\n\r\n{body}",
            body.len(),
            self.name
        );
        self.running = Some(tokio::spawn(serve(listener, answer.into(), self.delay)));
        Ok(())
    }

    /// Ends it in the midst of what it does, as a crash would.
    pub(super) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            // An error says that it was aborted.
            let _ = running.await;
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.running.is_none()
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves until it is aborted; its connections end with it.
async fn serve(listener: TcpListener, answer: Arc<str>, delay: Duration) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(converse(stream, answer.clone(), delay));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers one request after the other until the connection ends.
async fn converse(mut stream: TcpStream, answer: Arc<str>, delay: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    loop {
        match head.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(end) => {
                head.drain(..end + 4);
                tokio::time::sleep(delay).await;
                stream.write_all(answer.as_bytes()).await?;
            }
            None if head.len() > MOST_HEAD_BYTES => return Ok(()),
            None => {
                if stream.read_buf(&mut head).await? == 0 {
                    return Ok(());
                }
            }
        }
    }
}
