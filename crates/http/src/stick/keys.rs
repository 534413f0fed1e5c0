//! The keys that cookies are signed with: the first signs, all verify.

use std::sync::OnceLock;

use aws_lc_rs::hmac::{HMAC_SHA256, Key};

/// At least one key, the one that signs first. `Debug` shows the algorithm only.
#[derive(Clone, Debug)]
pub(crate) struct Keys(Vec<Key>);

/// The system gives no random bytes for a key of our own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoRandomness;

impl Keys {
    /// From these secrets, at least one.
    pub(crate) fn new<S: AsRef<[u8]>>(secrets: &[S]) -> Keys {
        debug_assert!(!secrets.is_empty(), "somebody has to sign");
        Keys(secrets.iter().map(|secret| Key::new(HMAC_SHA256, secret.as_ref())).collect())
    }

    /// The key of this process, made when it is first asked for: a reload keeps it, a restart does not,
    /// which is said once.
    ///
    /// # Errors
    /// [`NoRandomness`]
    pub(crate) fn of_this_process() -> Result<Keys, NoRandomness> {
        static OWN: OnceLock<Key> = OnceLock::new();
        if let Some(key) = OWN.get() {
            return Ok(Keys(vec![key.clone()]));
        }
        let mut secret = [0; 32];
        aws_lc_rs::rand::fill(&mut secret).map_err(|_| NoRandomness)?;
        let key = OWN.get_or_init(|| {
            tracing::warn!(
                "sticky cookies are signed with a key made at this start: after a restart, and on \
                 other Subaks, clients are balanced anew; stick = {{ keys_file = … }} avoids that"
            );
            Key::new(HMAC_SHA256, &secret)
        });
        Ok(Keys(vec![key.clone()]))
    }

    /// In order; the first signs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::hmac::sign;

    #[test]
    fn the_key_of_a_process_stays_the_same() {
        let signed = || -> Vec<Vec<u8>> {
            let keys = Keys::of_this_process().unwrap();
            keys.iter().map(|key| sign(key, b"text").as_ref().to_vec()).collect()
        };
        assert_eq!(signed(), signed());
        assert_ne!(signed(), [sign(&Key::new(HMAC_SHA256, &[0; 32]), b"text").as_ref().to_vec()]);
    }
}
