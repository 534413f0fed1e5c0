//! `access_log`: of the whole process, or of one listener, which then has that alone.

use std::time::Duration;

use subak_access_log::{
    Choice, Class, Classes, Destination, FACILITIES, Format, Server, Syslog, Unknown,
};

use super::{Reader, View, one_or_many};
use crate::address::{self, Address};
use crate::diagnostic::Diagnostic;
use crate::model::AccessLog;
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::tree::{Node, Value};
use crate::vocabulary::ACCESS_LOG;

/// How long a line may wait for others, where nothing is said.
const FLUSH: Duration = Duration::from_secs(1);

/// The logs of a table that has `access_log`; `inherited` where it says nothing.
pub(super) fn read(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    inherited: &[AccessLog],
) -> Vec<AccessLog> {
    let Some(node) = view.node("access_log") else { return inherited.to_vec() };
    match &node.value {
        Value::Boolean(true) => {
            if inherited.is_empty() {
                let diagnostic =
                    Diagnostic::error(node.span, "there is no access log that this could be");
                let help = "access_log = \"access.json\" at the top level, or here";
                reader.push(diagnostic.label("expected a path or a table").help(help));
            }
            inherited.to_vec()
        }
        Value::Boolean(false) => Vec::new(),
        _ => one_or_many(node).iter().filter_map(|node| one(reader, node)).collect(),
    }
}

fn one(reader: &mut Reader<'_>, node: &Node) -> Option<AccessLog> {
    if let Value::String(_) = &node.value {
        let destination = reader.text(node, |text| Ok(text.to_owned()))?;
        let destination = match &*destination {
            "stdout" => Destination::Stdout,
            _ => file(reader, node)?,
        };
        let (format, choice) = (Format::default(), Choice::default());
        return Some(AccessLog { destination, syslog: None, format, choice, flush: FLUSH });
    }
    let view = View::of(node, &ACCESS_LOG);
    let format = match view.node("format") {
        None => Some(Format::default()),
        Some(node) => format(reader, node),
    };
    let choice = choice(reader, &view);
    let (destination, syslog) = destination(reader, &view)?;
    let flush = view.duration("flush", FLUSH);
    Some(AccessLog { destination, syslog, format: format?, choice, flush })
}

fn destination(reader: &mut Reader<'_>, view: &View<'_>) -> Option<(Destination, Option<Syslog>)> {
    if let Some(node) = view.node("syslog") {
        let facility = view.node("facility").and_then(|node| reader.text(node, facility));
        let tag = view.string("tag").unwrap_or("subak");
        let server = reader.text(node, server)?;
        let local0 = FACILITIES.iter().position(|name| *name == "local0").unwrap_or(1);
        let syslog = Syslog { facility: facility.unwrap_or(local0), tag: tag.to_owned() };
        return Some((Destination::Syslog(server), Some(syslog)));
    }
    reader.only_with(view, &["facility", "tag"], "syslog");
    if let Some(node) = view.node("path") {
        return Some((file(reader, node)?, None));
    }
    let node = view.node("stdout")?;
    if matches!(node.value, Value::Boolean(false)) {
        let diagnostic = Diagnostic::error(node.span, "this log goes nowhere");
        reader.push(diagnostic.label("expected true").help("access_log = false logs nothing"));
    }
    Some((Destination::Stdout, None))
}

fn file(reader: &mut Reader<'_>, node: &Node) -> Option<Destination> {
    let directory = reader.directory(node);
    let path = |text: &str| match text.is_empty() || text.contains('\0') || text.ends_with('/') {
        true => Err(Problem::expected("this is no path", "expected the path of a file")),
        false => Ok(Destination::File(directory.join(text))),
    };
    reader.text(node, path)
}

fn server(text: &str) -> Result<Server, Problem> {
    let expected = "expected a server such as \"udp:127.0.0.1:514\" or \"unix:/dev/log\"";
    match text.strip_prefix("udp:") {
        Some(udp) => match address::bind(udp)?.as_slice() {
            [Address::Inet(address)] => Ok(Server::Udp(*address)),
            _ => Err(Problem::expected("this is no address to send to", expected)),
        },
        None => match address::socket(text.strip_prefix("unix:").unwrap_or_default())? {
            Address::Unix(path) => Ok(Server::Unix(path)),
            Address::Inet(_) => Err(Problem::expected("this is no syslog server", expected)),
        },
    }
}

fn facility(text: &str) -> Result<usize, Problem> {
    FACILITIES.iter().position(|name| *name == text).ok_or_else(|| {
        let near = nearest(text, FACILITIES);
        Problem::expected(format!("there is no facility `{text}`"), "expected one of RFC 5424")
            .maybe_help(near.map(|near| format!("did you mean \"{near}\"?")))
    })
}

fn format(reader: &mut Reader<'_>, node: &Node) -> Option<Format> {
    let Value::Array(items) = &node.value else {
        return reader.text(node, |text| Format::read(text).map_err(problem));
    };
    let texts = items.iter().filter_map(|item| match &item.value {
        Value::String(text) => Some(&**text),
        _ => None,
    });
    let read = Format::of_keys(texts);
    // The one that cannot be read is shown, not the whole list.
    let at = read.as_ref().err().and_then(|unknown| {
        let says =
            |item: &&Node| matches!(&item.value, Value::String(text) if **text == *unknown.found);
        items.iter().rfind(says)
    });
    let at = at.unwrap_or(node);
    reader.take(at, read.map_err(problem))
}

fn problem(unknown: Unknown) -> Problem {
    let near = nearest(&unknown.found, unknown.known.iter().map(String::as_str));
    let help = match (near, &*unknown.known) {
        (Some(near), _) => format!("did you mean `{near}`? docs/access-log.md lists all"),
        (None, [one, two]) => format!("known are `{one}` and `{two}`"),
        (None, _) => "docs/access-log.md lists all names".to_owned(),
    };
    Problem::expected(unknown.to_string(), "expected names of docs/access-log.md").help(help)
}

fn choice(reader: &mut Reader<'_>, view: &View<'_>) -> Choice {
    let only = view.node("statuses").map(|_| classes(reader, view, "statuses"));
    let always = classes(reader, view, "always");
    let sample_ppm = view.parts("sample", 1_000_000).unwrap_or(1_000_000);
    Choice { only, sample_ppm, always }
}

fn classes(reader: &mut Reader<'_>, view: &View<'_>, key: &str) -> Classes {
    let mut classes = Classes::default();
    for item in view.items(key) {
        let read = |text: &str| {
            let expected = "expected \"1xx\" to \"5xx\", or \"failure\"";
            text.parse::<Class>()
                .map_err(|()| Problem::expected("nothing ends in this way", expected))
        };
        if let Some(class) = reader.text(item, read) {
            classes.insert(class);
        }
    }
    classes
}
