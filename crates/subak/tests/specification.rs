//! Every test that SPECIFICATION.md names exists.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_specification_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("SPECIFICATION.md")).expect("the specification");
    let mut count = 0;
    for named in text.split('`').filter(|part| part.starts_with("crates/") && part.contains("::")) {
        let (file, test) = named.split_once("::").expect("a file and a test");
        let source = fs::read_to_string(root.join(file)).unwrap_or_default();
        let found = source.contains(&format!("fn {test}("));
        assert!(found, "SPECIFICATION.md names {named}, which is not there");
        count += 1;
    }
    assert!(count >= 30, "only {count} tests are named");
}
