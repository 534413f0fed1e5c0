//! docs/access-log.md lists every field. `UPDATE=1 cargo test -p subak-access-log` writes that part anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use subak_access_log::Field;

const BEGIN: &str = "<!-- fields -->\n";
const END: &str = "<!-- end -->";

fn table() -> String {
    let mut text = String::from("| JSON | nginx | HAProxy | |\n|---|---|---|---|\n");
    for field in Field::ALL {
        let names = |prefix: &str, names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| format!("`{prefix}{name}`")).collect();
            names.join(", ")
        };
        let json = if field.json().is_empty() { &[][..] } else { &[field.json()][..] };
        writeln!(
            text,
            "| {} | {} | {} | {} |",
            names("", json),
            names("$", field.nginx()),
            names("%", field.haproxy()),
            field.meaning()
        )
        .expect("writing to memory");
    }
    text
}

#[test]
fn the_document_lists_every_field() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/access-log.md");
    let found = fs::read_to_string(&path).expect("docs/access-log.md");
    let (before, rest) = found.split_once(BEGIN).expect("the marker of its beginning");
    let (_, after) = rest.split_once(END).expect("the marker of its end");
    let expected = [before, BEGIN, &table(), END, after].concat();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &expected).expect("write docs/access-log.md");
    } else {
        assert!(
            found == expected,
            "docs/access-log.md is out of date: UPDATE=1 cargo test -p subak-access-log"
        );
    }
}
