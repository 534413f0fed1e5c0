//! `user`, `group` and `pid_file`: what the process is to its machine.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Reader, View};
use crate::problem::Problem;

pub(super) struct Read {
    pub(super) user: Option<Arc<str>>,
    pub(super) group: Option<Arc<str>>,
    pub(super) pid_file: Option<PathBuf>,
}

pub(super) fn read(reader: &mut Reader<'_>, root: &View<'_>) -> Read {
    if root.node("user").is_none() {
        reader.only_with(root, &["group"], "user");
    }
    let account = |reader: &mut Reader<'_>, key: &str| {
        let node = root.node(key)?;
        reader.text(node, name).map(Arc::from)
    };
    let pid_file = root
        .node("pid_file")
        .and_then(|node| Some(reader.directory(node).join(reader.text(node, path)?)));
    Read { user: account(reader, "user"), group: account(reader, "group"), pid_file }
}

/// Whether the machine knows it is asked when it is started: a configuration is checked elsewhere too.
fn name(text: &str) -> Result<String, Problem> {
    let expected = "expected a name such as \"subak\", or a number";
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let begins =
        text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric() || first == b'_');
    if !begins || text.len() > 32 || !text.bytes().all(is_word) {
        return Err(Problem::expected("this is no name of a user or a group", expected));
    }
    // One that begins with digits alone is a number, and has to fit.
    if text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_err() {
        return Err(Problem::expected("this number is too large", expected));
    }
    Ok(text.to_owned())
}

fn path(text: &str) -> Result<PathBuf, Problem> {
    if text.is_empty() || text.contains('\0') || text.ends_with('/') {
        let expected = "expected the path of a file such as \"/run/subak/subak.pid\"";
        return Err(Problem::expected("this is no path of a file", expected));
    }
    Ok(PathBuf::from(text))
}
