//! Whose key is it? Tables know hashes only; here are the names of a bounded number of them, for whoever
//! looks at the table.

use std::collections::HashMap;
use std::sync::{Mutex, TryLockError};

/// Names that are kept.
const MOST: usize = 1024;

/// Bytes of a name that are kept.
const BYTES: usize = 64;

/// Names of keys by their hashes.
#[derive(Debug, Default)]
pub struct Names(Mutex<HashMap<u64, Box<str>>>);

impl Names {
    /// This hash has this name. When there are too many, those go that are not `wanted` any more;
    /// then, if need be, the newcomer has none. Nobody waits: while another thread is at it, nothing
    /// is noted.
    pub fn note(&self, key: u64, name: impl FnOnce() -> String, wanted: impl Fn(u64) -> bool) {
        let mut names = match self.0.try_lock() {
            Ok(names) => names,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if names.contains_key(&key) {
            return;
        }
        if names.len() >= MOST {
            names.retain(|key, _| wanted(*key));
        }
        if names.len() < MOST {
            let mut name = name();
            if let Some(end) = (0..=BYTES).rev().find(|end| name.is_char_boundary(*end)) {
                name.truncate(end);
            }
            names.insert(key, name.into());
        }
    }

    /// The names of hashes that have these tags.
    pub fn of_tags(
        &self,
        tags: impl Iterator<Item = u64>,
        tag: impl Fn(u64) -> u64,
    ) -> Vec<Option<String>> {
        let names = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let by_tag: HashMap<u64, &str> =
            names.iter().map(|(key, name)| (tag(*key), &**name)).collect();
        tags.map(|tag| by_tag.get(&tag).map(|name| (*name).to_owned())).collect()
    }

    /// The names of these hashes.
    pub fn of(&self, keys: impl Iterator<Item = u64>) -> Vec<Option<String>> {
        let names = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        keys.map(|key| names.get(&key).map(|name| name.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Names};

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let names = Names::default();
        names.note(1, || "ü".repeat(500), |_| true);
        for key in 2..5000 {
            names.note(key, || key.to_string(), |_| true);
        }
        let known = names.of(1..5000).into_iter().flatten().count();
        assert_eq!(known, MOST);
        assert_eq!(names.of([1].into_iter()), [Some("ü".repeat(32))]);
        names.note(9999, || "new".into(), |key| key == 3);
        assert_eq!(
            names.of([3, 9999, 4].into_iter()),
            [Some("3".into()), Some("new".into()), None]
        );
    }
}
