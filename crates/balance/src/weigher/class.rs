//! Free, normal or overload: what a utilisation means.
//!
//! | | free below | overload from |
//! |---|---|---|
//! | CPU | 0.6 | 0.8 |
//! | memory, disk, network | 0.6 | 0.85 |
//!
//! Source: Ma & Chi 2022, table 3, which heads its rows λ but gives ranges of the utilisation that λ
//! weighs. A value on a border belongs to the heavier class.

use super::{Ppm, Resource};

/// How loaded an endpoint is, in a word. Later is heavier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Room for more.
    Free,
    /// As it should be.
    Normal,
    /// More than it should have.
    Overload,
}

impl Class {
    /// All of them, the lightest first.
    pub const ALL: [Class; 3] = [Class::Free, Class::Normal, Class::Overload];

    /// The class of one resource in use to this share.
    pub fn of(resource: Resource, used: Ppm) -> Class {
        let overload = match resource {
            Resource::Cpu => 800_000,
            Resource::Memory | Resource::Disk | Resource::Network => 850_000,
        };
        match used.get() {
            used if used >= overload => Class::Overload,
            used if used >= 600_000 => Class::Normal,
            _ => Class::Free,
        }
    }

    /// As the API names it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Free => "free",
            Class::Normal => "normal",
            Class::Overload => "overload",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Ppm, Resource};

    #[test]
    fn borders_are_those_of_the_papers_table_3() {
        for (resource, overload) in Resource::ALL.into_iter().zip([0.8, 0.85, 0.85, 0.85]) {
            let class = |used: f64| Class::of(resource, Ppm::saturating((used * 1e6) as u64));
            assert_eq!(class(0.0), Class::Free);
            assert_eq!(class(0.599_999), Class::Free);
            assert_eq!(class(0.6), Class::Normal);
            assert_eq!(class(overload - 0.000_001), Class::Normal, "{resource:?}");
            assert_eq!(class(overload), Class::Overload, "{resource:?}");
            assert_eq!(class(1.0), Class::Overload);
        }
        assert!(Class::Free < Class::Normal && Class::Normal < Class::Overload);
    }
}
