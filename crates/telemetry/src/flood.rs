//! What a client did too much of on one HTTP/2 connection, so that the connection was ended: a closed
//! list.

macro_rules! floods {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal,)*) => {
        /// What a client did too much of.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Flood { $($(#[doc = $doc])+ $variant,)* }

        impl Flood {
            /// Every kind, in the order of its number.
            pub const ALL: [Flood; [$($name),*].len()] = [$(Flood::$variant),*];

            /// The value of the label `kind`.
            pub fn name(self) -> &'static str {
                match self { $(Flood::$variant => $name,)* }
            }

            /// What it means, for documents.
            pub fn meaning(self) -> &'static str {
                match self { $(Flood::$variant => concat!($($doc),+).trim_ascii(),)* }
            }
        }
    };
}

floods! {
    /// Requests that the client itself reset before they were answered ("rapid reset").
    Resets "resets",
    /// Requests that Subak had to reset because of what the client sent on them ("MadeYouReset").
    MadeResets "made_resets",
    /// PING frames.
    Pings "pings",
    /// SETTINGS frames.
    Settings "settings",
    /// PRIORITY frames.
    Priorities "priorities",
    /// WINDOW_UPDATE frames, more than what was sent to it explains.
    WindowUpdates "window_updates",
    /// Frames of kinds that are not known.
    Unknown "unknown",
    /// Empty or tiny DATA frames.
    SmallData "small_data",
    /// CONTINUATION frames of one head.
    Continuations "continuations",
    /// A head many times larger than allowed, once decompressed.
    HeaderBomb "header_bomb",
    /// Windows so small that answers leave in tiny pieces.
    TinyWindows "tiny_windows",
    /// A frame or a head that was begun and not ended in time.
    SlowHead "slow_head",
    /// Answers that the client does not take from its socket.
    StalledReader "stalled_reader",
}

#[cfg(test)]
mod tests {
    use super::Flood;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_unique() {
        for (number, flood) in Flood::ALL.into_iter().enumerate() {
            assert_eq!(flood as usize, number);
            assert!(!flood.meaning().is_empty() && !flood.meaning().starts_with(' '));
        }
        let names: BTreeSet<_> = Flood::ALL.iter().map(|flood| flood.name()).collect();
        assert_eq!(names.len(), Flood::ALL.len());
    }
}
