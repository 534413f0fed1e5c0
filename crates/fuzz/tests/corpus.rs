//! Every input that was kept passes its check, without libFuzzer:
//! `cargo test -p subak-fuzz`.

use std::path::Path;

#[test]
fn every_kept_input_passes_its_check() {
    for (name, check) in subak_fuzz::CHECKS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).expect("a corpus per target") {
            let path = entry.expect("readable").path();
            let data = std::fs::read(&path).expect("readable");
            // The name of the input, should the check panic.
            println!("{}", path.display());
            check(&data);
            count += 1;
        }
        assert!(count >= 20, "{name}: only {count} inputs");
    }
}
