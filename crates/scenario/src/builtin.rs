//! The scenarios that every Subak has with it.

/// A scenario by name.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// What `subak lab run` calls it.
    pub name: &'static str,
    /// Its TOML.
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),+ $(,)?) => {
        /// All of them.
        pub const ALL: &[Builtin] = &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        }),+];
    };
}

builtin![
    "average-load",
    "stress",
    "breakpoint",
    "spike",
    "soak",
    "slow-endpoint",
    "flap",
    "herd",
    "bursts",
    "zipf-keys",
    "stale-views",
    "failover",
    "deploy",
    "robustness",
    "security",
];

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}
