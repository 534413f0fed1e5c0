//! A configuration in several files, and values from outside: the same as one text that says it all.

use std::path::Path;

use proptest::prelude::*;
use subak_config::{Config, InMemory, Outcome, Severity, parse_with};

fn files(files: &[(&str, &str)]) -> InMemory {
    let one = |(path, text): &(&str, &str)| (path.into(), text.as_bytes().to_vec());
    InMemory { files: files.iter().map(one).collect(), ..InMemory::default() }
}

fn read(text: &str, with: &InMemory) -> Outcome {
    parse_with(text, Path::new("etc/subak.toml"), with)
}

#[track_caller]
fn config(text: &str, with: &InMemory) -> Config {
    let outcome = read(text, with);
    let shown = outcome.render(false);
    outcome.config.unwrap_or_else(|| panic!("{shown}"))
}

const MAIN: &str = "include = [\"conf.d/*.toml\", \"more.toml\"]\n[listener.web]\nbind = \"0.0.0.0:80\"\n\
    pool = \"app\"\n[[listener.web.route]]\npath = \"/main\"\npool = \"app\"\n\
    [pool.app]\nendpoints = [\"10.0.0.2:80\"]\n";

#[test]
fn files_are_read_in_order_and_their_tables_put_together() {
    let with = files(&[
        ("etc/conf.d/20.toml", "[[listener.web.route]]\npath = \"/20\"\npool = \"b\"\n"),
        (
            "etc/conf.d/10.toml",
            "include = \"sub/x.toml\"\n[[listener.web.route]]\npath = \"/10\"\npool = \"b\"\n",
        ),
        (
            "etc/conf.d/sub/x.toml",
            "[pool.b]\nendpoints = [\"10.0.0.3:80\"]\n[[listener.web.route]]\npath = \"/x\"\nrespond = { status = 200, file = \"x.html\" }\n",
        ),
        ("etc/conf.d/sub/x.html", "x"),
        ("etc/conf.d/.hidden.toml", "nonsense"),
        ("etc/conf.d/readme.txt", "nonsense"),
        ("etc/more.toml", "workers = 3\n[listener.other]\nbind = \"0.0.0.0:81\"\npool = \"b\"\n"),
    ]);
    let found = config(MAIN, &with);
    let paths: Vec<String> =
        found.listeners[0].routes.iter().map(|route| format!("{:?}", route.path)).collect();
    let expected = ["/main", "/10", "/x", "/20"].map(|path| format!("Prefix({path:?})"));
    assert_eq!(paths, expected);
    let whole = "workers = 3\n[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n\
        [[listener.web.route]]\npath = \"/main\"\npool = \"app\"\n\
        [[listener.web.route]]\npath = \"/10\"\npool = \"b\"\n\
        [[listener.web.route]]\npath = \"/x\"\nrespond = { status = 200, file = \"conf.d/sub/x.html\" }\n\
        [[listener.web.route]]\npath = \"/20\"\npool = \"b\"\n\
        [listener.other]\nbind = \"0.0.0.0:81\"\npool = \"b\"\n\
        [pool.app]\nendpoints = [\"10.0.0.2:80\"]\n[pool.b]\nendpoints = [\"10.0.0.3:80\"]\n";
    assert_eq!(found, config(whole, &with));
    let sources = read(MAIN, &with).sources;
    let names: Vec<String> = sources.files().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(
        names,
        [
            "etc/subak.toml",
            "etc/conf.d/10.toml",
            "etc/conf.d/sub/x.toml",
            "etc/conf.d/20.toml",
            "etc/more.toml"
        ]
    );
    assert_eq!(sources.files().next().map(|(_, text)| text), Some(MAIN));
}

#[test]
fn routes_may_come_before_their_listener() {
    let main = "include = [\"web.toml\"]\n[[listener.web.route]]\npath = \"/a\"\npool = \"app\"\n";
    let web = "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\nendpoints = [\"10.0.0.2:80\"]\n";
    let found = config(main, &files(&[("etc/web.toml", web)]));
    assert_eq!((found.listeners[0].routes.len(), found.listeners[0].bind.len()), (1, 1));
    // A listener that only has routes is none; it is said where it stands.
    let outcome = read(
        "include = \"web.toml\"\n",
        &files(&[("etc/web.toml", main.split_once('\n').expect("two lines").1)]),
    );
    let lacks = outcome.diagnostics.iter().find(|one| one.message.contains("lacks `bind`"));
    let (path, _) = outcome.sources.place(lacks.expect("it lacks bind").span);
    assert_eq!(path, Path::new("etc/web.toml"));
}

#[test]
fn a_pattern_may_match_nothing_and_a_path_may_not() {
    let main = "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\nendpoints = [\"10.0.0.2:80\"]\n";
    let none = files(&[]);
    assert_eq!(config(&format!("include = \"none/*.toml\"\n{main}"), &none), config(main, &none));
    let outcome = read(&format!("include = \"none.toml\"\n{main}"), &none);
    assert_eq!(outcome.diagnostics[0].message, "there is no file etc/none.toml");
}

#[test]
fn how_deep_and_how_many_files_is_bounded() {
    let chain: Vec<(String, String)> = (0..20)
        .map(|index| (format!("etc/{index}.toml"), format!("include = \"{}.toml\"\n", index + 1)))
        .collect();
    let refs: Vec<(&str, &str)> = chain.iter().map(|(a, b)| (&**a, &**b)).collect();
    let outcome = read("include = \"0.toml\"\n", &files(&refs));
    assert!(outcome.diagnostics.iter().any(|one| one.message.contains("more than 8 deep")));
    assert_eq!(outcome.sources.files().len(), 9);
    let many: Vec<(String, String)> =
        (0..300).map(|index| (format!("etc/d/{index}.toml"), String::new())).collect();
    let refs: Vec<(&str, &str)> = many.iter().map(|(a, b)| (&**a, &**b)).collect();
    let outcome = read("include = \"d/*\"\n", &files(&refs));
    assert!(outcome.diagnostics.iter().any(|one| one.message.contains("more than 256 files")));
    assert_eq!(outcome.sources.files().len(), 256);
}

#[test]
fn what_stands_in_braces_is_replaced_and_read_as_what_is_expected() {
    let mut with = files(&[
        ("etc/name", "file\n"),
        ("etc/d/x.toml", "[pool.x]\nendpoints = [\"${file:name}:1\"]\n"),
        ("etc/d/name", "10.0.0.9"),
    ]);
    let variables = [
        ("N", "3"),
        ("P", "81"),
        ("YES", "true"),
        ("EMPTY", ""),
        ("RATIO", "0.5"),
        ("BRACES", "${N}"),
    ];
    with.variables = variables.map(|(name, value)| (name.to_string(), value.to_string())).into();
    let text = |values: [&str; 9]| {
        let [n, p, yes, ratio, name, header, unset, size, x] = values;
        format!(
            "include = \"d/*.toml\"\nworkers = {n}\n[listener.web]\nbind = \"0.0.0.0:{p}\"\npool = \"app\"\nallow_trace = {yes}\n\
             limits = {{ body = {size}, requests_per_connection = {n} }}\n\
             request_headers = {{ set = {{ A = \"{name}\", B = '{header}' }} }}\n\
             [[listener.web.route]]\npath = {{ regex = '^/(a)$' }}\nredirect = \"/{unset}{{path}}\"\n\
             [[listener.web.route]]\npath = \"/x\"\npool = \"x\"\n\
             [pool.app]\nbalance = {{ algorithm = \"hash\", key = \"header:X\", method = \"ring\", balance_factor = {ratio} }}\n\
             endpoints = [\"10.0.0.2:80 weight={}\"]\n# {x}\n",
            n.trim_matches('"')
        )
    };
    let written = text([
        "\"${N}\"",
        "${P}",
        "\"${YES}\"",
        "\"1.${N}\"",
        "${file:name}${EMPTY}",
        "$${x} $1 ${BRACES}",
        "${EMPTY:-d}",
        "\"${N}KiB\"",
        "${UNSET} of a comment",
    ]);
    let plain = text(["3", "81", "true", "1.3", "file", "${x} $1 ${N}", "d", "\"3KiB\"", ""]);
    let with_plain = InMemory {
        files: files(&[("etc/d/x.toml", "[pool.x]\nendpoints = [\"10.0.0.9:1\"]\n")]).files,
        ..InMemory::default()
    };
    let found = config(&written, &with);
    // The braces of the plain form are escaped, so that they stand for themselves.
    let plain = plain.replace("${x}", "$${x}").replace("${N}", "$${N}");
    assert_eq!(found, config(&plain, &with_plain));
}

#[test]
fn a_secret_put_into_a_header_is_not_shown() {
    let mut with = files(&[("etc/token", "s3cr3t-of-the-file\n")]);
    with.variables.insert("TOKEN".into(), "s3cr3t-of-the-environment".into());
    let found = config(
        &MAIN.replace("pool = \"app\"\n[[", "pool = \"app\"\nrequest_headers = { set = { Authorization = \"Bearer ${file:token}\", X = \"${TOKEN}\", Y = \"plain\" } }\n[[").replacen("include", "# ", 1),
        &with,
    );
    let value = &found.listeners[0].request_headers.set[0].1;
    assert_eq!(value.as_str(), "Bearer s3cr3t-of-the-file");
    let shown = format!("{found:?}");
    assert!(!shown.contains("s3cr3t") && shown.contains("plain"), "{shown}");
}

proptest! {
    #[test]
    fn a_text_in_pieces_means_what_it_means_in_one(parts in prop::collection::vec((0..4_usize, 1..4_usize), 1..8)) {
        let main = "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"p0x0\"\n";
        let piece = |index: usize, (pool, routes): &(usize, usize)| {
            let routes: String = (0..*routes)
                .map(|route| format!("[[listener.web.route]]\npath = \"/{index}/{route}/\"\npool = \"p{index}x{pool}\"\n"))
                .collect();
            format!("{routes}[pool.p{index}x{pool}]\nendpoints = [\"10.{index}.0.{pool}:80\"]\n")
        };
        let mut parts = parts;
        parts[0].0 = 0;
        let pieces: Vec<(String, String)> = parts
            .iter()
            .enumerate()
            .map(|(index, part)| (format!("etc/d/{index}.toml"), piece(index, part)))
            .collect();
        let refs: Vec<(&str, &str)> = pieces.iter().map(|(path, text)| (&**path, &**text)).collect();
        let apart = read(&format!("include = \"d/*.toml\"\n{main}"), &files(&refs));
        let whole: String = pieces.iter().map(|(_, text)| &**text).collect();
        let whole = read(&format!("{main}{whole}"), &files(&[]));
        prop_assert!(whole.diagnostics.iter().all(|one| one.severity != Severity::Error));
        prop_assert_eq!(apart.config, whole.config);
    }
}
