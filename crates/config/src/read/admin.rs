//! `admin`: where the Admin API listens.

use std::net::SocketAddr;

use super::{Reader, View, listener, secret};
use crate::address::{self, Address};
use crate::diagnostic::{Diagnostic, Span};
use crate::model::Admin;
use crate::pattern::{self, HostPattern};
use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::vocabulary::ADMIN;

pub(super) fn read(
    reader: &mut Reader<'_>,
    root: &View<'_>,
    listeners: &[listener::Read],
) -> Admin {
    let Some(node) = root.node("admin") else { return Admin::Socket(None) };
    if let Value::Boolean(on) = &node.value {
        return if *on { Admin::Socket(None) } else { Admin::Off };
    }
    let view = View::of(node, &ADMIN);
    match (view.node("socket"), view.node("tcp")) {
        (Some(node), _) => {
            reader.only_with(&view, &["token_file", "hosts", "unix_endpoints"], "tcp");
            let Some(address) = reader.text(node, address::socket) else {
                return Admin::Socket(None);
            };
            alone(reader, node, &address, listeners);
            match address {
                Address::Unix(path) => Admin::Socket(Some(path)),
                Address::Inet(_) => Admin::Socket(None),
            }
        }
        (None, Some(node)) => over_tcp(reader, &view, node, listeners).unwrap_or(Admin::Off),
        (None, None) => Admin::Off,
    }
}

fn over_tcp(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    node: &Node,
    listeners: &[listener::Read],
) -> Option<Admin> {
    let token = match view.node("token_file") {
        Some(node) => secret::token(reader, node),
        None => {
            let diagnostic =
                Diagnostic::error(node.span, "the Admin API over TCP asks for a token");
            let help = "token_file = \"admin.token\", a file that `openssl rand -hex 32` fills; or \
                        a socket, which needs none";
            reader.push(diagnostic.label("expected `token_file` beside it").help(help).derived());
            None
        }
    };
    let address = reader.text(node, tcp)?;
    alone(reader, node, &Address::Inet(address), listeners);
    let hosts = view.items("hosts").iter().filter_map(|node| reader.text(node, host)).collect();
    let unix_endpoints = view.boolean("unix_endpoints", false);
    Some(Admin::Tcp { address, token: token?, hosts, unix_endpoints })
}

/// A name without a port; no pattern.
fn host(text: &str) -> Result<String, Problem> {
    match pattern::host(text)? {
        HostPattern::Exact(name) => Ok(name.to_string()),
        HostPattern::Suffix(_) => {
            let expected = "expected a name such as \"lb1.internal\"";
            Err(Problem::expected("this stands for more than one name", expected))
        }
    }
}

fn tcp(text: &str) -> Result<SocketAddr, Problem> {
    let expected = "expected an address such as \"127.0.0.1:9000\"";
    match address::bind(text)?.as_slice() {
        [Address::Inet(address)] => Ok(*address),
        [Address::Unix(path)] => Err(Problem::expected("this is a unix socket", expected)
            .help(format!("socket = \"{}\"", path.display()))),
        _ => Err(Problem::expected("the Admin API listens on one address", expected)
            .help(format!("\"127.0.0.1{}\"", &text[1..]))),
    }
}

/// Reports an address that a listener takes.
fn alone(reader: &mut Reader<'_>, node: &Node, address: &Address, listeners: &[listener::Read]) {
    let binds = listeners.iter().flat_map(|read| {
        let spans: &[Span] = &read.bind_spans;
        read.listener.bind.iter().zip(spans).map(move |bound| (read, bound))
    });
    for (read, (_, span)) in binds.filter(|(_, (bound, _))| *bound == address) {
        let name = &read.listener.name;
        let message = format!("`{name}` and the Admin API cannot both listen on {address}");
        let diagnostic = Diagnostic::error(node.span, message);
        reader.push(diagnostic.label("the same address again").related(*span, "first here"));
    }
}
