//! Questions to an agent, and to what takes its place and misbehaves.

use std::net::{Ipv4Addr, SocketAddr};

use subak_balance::weigher::Coefficients;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::{Agent, Http, Options, measure};

const PATIENCE: Duration = Duration::from_secs(10);

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn token(text: &str) -> Token {
    Token::new(text).unwrap()
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test)
}

#[test]
fn an_agent_gives_its_report_for_its_token() {
    run(async {
        let secret = "0123456789abcdef";
        let options = Options {
            measure: measure::Options { interval: Duration::from_millis(20), ..Default::default() },
            http: Some(Http { listen: vec![any_port()], token: token(secret) }),
            agent_check: vec![any_port()],
            load: Coefficients::DEFAULT,
        };
        let agent = Agent::start(options).unwrap();
        let (address, check) = (agent.http_addresses()[0], agent.agent_check_addresses()[0]);
        let ask = async {
            let report = fetch(address, &token(secret), PATIENCE).await.unwrap();
            assert!(report.capacity.cpu.unwrap() >= 1000 && report.capacity.memory.is_some());
            assert!(report.used.memory.is_some(), "{report:?}");
            let wrong = fetch(address, &token("0123456789abcdee"), PATIENCE).await;
            assert!(matches!(wrong, Err(AgentError::Token)), "{wrong:?}");
            let mut line = String::new();
            let mut stream = TcpStream::connect(check).await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            stream.read_to_string(&mut line).await.unwrap();
            let percent = line.strip_suffix("%\n").and_then(|line| line.parse::<u8>().ok());
            assert!(percent.is_some_and(|percent| (1..=100).contains(&percent)), "{line:?}");
        };
        tokio::select! {
            () = ask => {}
            () = agent.run(std::future::pending()) => panic!("it does not stop by itself"),
        }
    });
}

#[test]
fn a_port_that_is_taken_is_an_error_that_says_who_has_it() {
    run(async {
        let held = TcpListener::bind(any_port()).await.unwrap();
        let address = held.local_addr().unwrap();
        let options = Options {
            measure: measure::Options::default(),
            http: None,
            agent_check: vec![address],
            load: Coefficients::DEFAULT,
        };
        let error = Agent::start(options).unwrap_err().to_string();
        assert!(error.contains(&format!("cannot listen on {address}")), "{error}");
        assert!(error.contains("ss -ltnp"), "{error}");
    });
}

/// Asks something that answers one question with these bytes and the end of the connection.
async fn ask(answer: Vec<u8>) -> Result<Report, AgentError> {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut head).await.unwrap() > 0);
        }
        // It may have enough before the end.
        let _ = stream.write_all(&answer).await;
        drop(stream);
        String::from_utf8(head).unwrap()
    };
    let token = token("0123456789abcdef");
    let (report, head) = tokio::join!(fetch(address, &token, PATIENCE), serve);
    assert!(head.starts_with("GET /v1/report HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("authorization: bearer 0123456789abcdef\r\n"), "{head}");
    assert!(head.contains(&address.to_string()), "{head}");
    report
}

#[test]
fn whatever_is_no_report_is_an_error_and_says_which() {
    run(async {
        let body = r#"{"version":1,"age_ms":0,"window_ms":9}"#;
        let answer = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes();
        let report = ask(answer("200 OK", body)).await.unwrap();
        assert_eq!(report.window, Duration::from_millis(9));

        let long = " ".repeat(MAX_REPORT_BYTES + 1);
        for (bytes, says) in [
            (answer("503 Busy\r\nContent-Length: 0", ""), "answered 503"),
            (answer("302 Found\r\nLocation: /\r\nContent-Length: 0", ""), "answered 302"),
            (answer("200 OK", "{}"), "not a report"),
            (answer("200 OK", &body.replace(":1", ":7")), "version 7"),
            (answer("200 OK", &format!("{body}{long}")), "more than 65536 bytes"),
            (answer("200 OK\r\nContent-Length: 99", body), "no HTTP answer"),
            (answer("200 OK\r\nTransfer-Encoding: chunked", "zz\r\n"), "no HTTP answer"),
            (answer(&format!("200 OK\r\nX: {long}"), body), "no HTTP answer"),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n".to_vec(), "no HTTP answer"),
            (Vec::new(), "no HTTP answer"),
        ] {
            let error = ask(bytes).await.unwrap_err().to_string();
            assert!(error.contains(says), "{says}: {error}");
        }
    });
}

#[test]
fn who_says_nothing_is_given_up_in_time() {
    run(async {
        let silent = TcpListener::bind(any_port()).await.unwrap();
        let address = silent.local_addr().unwrap();
        let token = token("0123456789abcdef");
        let limit = Duration::from_millis(50);
        let late = fetch(address, &token, limit).await;
        assert!(matches!(late, Err(AgentError::Late { .. })), "{late:?}");
        drop(silent);
        let refused = fetch(address, &token, PATIENCE).await;
        assert!(matches!(refused, Err(AgentError::Connect(_))), "{refused:?}");
    });
}
