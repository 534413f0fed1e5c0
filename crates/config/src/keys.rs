//! How the vocabulary is declared: tables, keys, what a key takes. The words themselves are in
//! `vocabulary`.

/// A table of the configuration.
#[derive(Debug)]
pub struct Table {
    /// How it is addressed, with NAME for what the user names: `listener.NAME.limits`.
    pub path: &'static str,
    /// What it is, as a message says it: `a listener`.
    pub what: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// In the order of the reference.
    pub keys: &'static [Key],
    /// What keys have to do with each other.
    pub rules: &'static [Rule],
}

impl Table {
    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds without it.
    pub without: Without,
    /// A value as TOML that is not the default.
    pub example: &'static str,
    /// What it means, in a line or two.
    pub doc: &'static str,
}

/// What holds when a key is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Without {
    /// It has to be there.
    Required,
    /// The same as this value, as TOML.
    Default(&'static str),
    /// What these words say; no value means the same.
    Absent(&'static str),
}

/// What keys of one table have to do with each other.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// One of them and no other.
    ExactlyOne(&'static [&'static str]),
    /// One of them or more.
    AtLeastOne(&'static [&'static str]),
    /// None or one of them.
    AtMostOne(&'static [&'static str]),
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// An integer in this range, both ends included.
    Integer {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// A number from 0 to 1.
    Ratio,
    /// A number in this range, both ends included, in thousandths.
    Decimal {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// `"250ms"`, `"10s"`, `"1m30s"`: from [`MIN_TIME`](crate::defaults::MIN_TIME) to [`MAX_TIME`](crate::defaults::MAX_TIME).
    Duration,
    /// A duration in this range, both ends included, in milliseconds.
    DurationWithin {
        /// The least.
        min_ms: u64,
        /// The most.
        max_ms: u64,
    },
    /// Bytes: `"16KiB"`, `"64k"` or an integer, in this range.
    Size {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// That kind, or `"unlimited"`.
    OrUnlimited(&'static Kind),
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A string that is read further.
    Text(&'static Text),
    /// An array of that kind.
    List(&'static Kind),
    /// One of that kind, or an array of them.
    OneOrMany(&'static Kind),
    /// The first of these that takes the TOML type at hand.
    Either(&'static [Kind]),
    /// An algorithm of the catalogue: its name, or a table of `algorithm` and its options.
    Algorithm,
    /// A table with these keys.
    Table(&'static Table),
    /// A table whose keys the user chooses.
    Map(&'static Map),
}

/// A string that is read further.
#[derive(Debug)]
pub struct Text {
    /// As a message says it: `an address such as "0.0.0.0:80"`.
    pub what: &'static str,
    /// A regular expression (ECMA-262) that every valid string matches, for editors.
    pub pattern: Option<&'static str>,
}

/// A table whose keys the user chooses.
#[derive(Debug)]
pub struct Map {
    /// What a key is, as a message says it.
    pub key: &'static str,
    /// A regular expression (ECMA-262) for the keys.
    pub pattern: &'static str,
    /// What each key takes.
    pub value: Kind,
}
