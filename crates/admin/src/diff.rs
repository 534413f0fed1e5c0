//! How two configurations differ, as text: a unified diff, file by file.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

use crate::wish::Files;

/// For one file; what takes longer is shown less well.
const PATIENCE: Duration = Duration::from_millis(500);

/// From one set of files to another; empty where they are the same.
pub(crate) fn unified(before: &Files, after: &Files, (old, new): (&str, &str)) -> String {
    let find = |files: &Files, path: &std::path::Path| {
        let found = files.iter().find(|(known, _)| known == path);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    };
    let gone = before.iter().filter(|(path, _)| !after.iter().any(|(known, _)| known == path));
    let paths = after.iter().chain(gone).map(|(path, _)| path);
    let mut text = String::new();
    for path in paths {
        let (from, to) = (find(before, path), find(after, path));
        if from == to {
            continue;
        }
        let mut options = TextDiff::configure();
        let diff = options.algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(&*from, &*to);
        let name = path.display();
        let header = (format!("{name} ({old})"), format!("{name} ({new})"));
        text += &diff.unified_diff().context_radius(3).header(&header.0, &header.1).to_string();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect()
    }

    #[test]
    fn only_what_differs_is_shown_with_its_file() {
        let before = files(&[("a.toml", "x = 1\ny = 2\n"), ("b.toml", "z = 1\n")]);
        let after = files(&[("a.toml", "x = 1\ny = 3\n"), ("b.toml", "z = 1\n")]);
        let expected = "--- a.toml (on disk)\n+++ a.toml (in force)\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n";
        assert_eq!(unified(&before, &after, ("on disk", "in force")), expected);
        assert_eq!(unified(&before, &before, ("a", "b")), "");
        let less = files(&[("a.toml", "x = 1\ny = 2\n")]);
        assert!(unified(&before, &less, ("a", "b")).contains("-z = 1\n"));
        assert!(unified(&less, &before, ("a", "b")).contains("+z = 1\n"));
    }
}
