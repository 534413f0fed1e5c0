//! Who asks, and for what? Numbers, some of them oftener than others.
//!
//! A draw costs one random word whatever the distribution: Walker's alias method. Source: Walker, "An
//! efficient method for generating discrete random variables with general distributions", 1977; the
//! table as Vose builds it, 1991.

use subak_base::Rng;

/// How often which key comes.
#[derive(Clone, PartialEq, Debug)]
pub enum Keys {
    /// All equally often.
    Uniform {
        /// So many; at least 1.
        count: u32,
    },
    /// The n-th in proportion to `n^−exponent`.
    Zipf {
        /// So many; at least 1. Takes 8 octets each.
        count: u32,
        /// 1 or so for pages of the web; 0 is uniform.
        exponent: f64,
    },
    /// Few addresses with many people behind each: offices, carriers.
    Shared {
        /// How many people are behind each address.
        people: Vec<u32>,
    },
}

/// Draws keys.
#[derive(Debug)]
pub(crate) enum Draw {
    Uniform(u64),
    Alias(Box<[Place]>),
}

/// One place of an alias table: itself, or, for draws above the threshold, another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    threshold: u32,
    other: u32,
}

impl Draw {
    pub(crate) fn new(keys: &Keys) -> Draw {
        match keys {
            Keys::Uniform { count } => Draw::Uniform(u64::from((*count).max(1))),
            Keys::Zipf { count, exponent } => {
                let weight = |rank: u32| libm::pow(f64::from(rank), -exponent);
                Draw::Alias(alias((1..=(*count).max(1)).map(weight).collect()))
            }
            Keys::Shared { people } => {
                Draw::Alias(alias(people.iter().map(|people| f64::from(*people)).collect()))
            }
        }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Rng) -> u32 {
        match self {
            Draw::Uniform(count) => random.below(*count) as u32,
            Draw::Alias(places) => {
                let word = random.next_u64();
                let scaled = u128::from(word) * places.len() as u128;
                let index = (scaled >> 64) as u32;
                // The fraction that is left is uniform too.
                let place = places[index as usize];
                let fraction = (scaled as u64 >> 32) as u32;
                if fraction < place.threshold { index } else { place.other }
            }
        }
    }
}

fn alias(weights: Vec<f64>) -> Box<[Place]> {
    let total: f64 = weights.iter().sum();
    if weights.is_empty() || total <= 0.0 {
        return Box::new([Place { threshold: u32::MAX, other: 0 }]);
    }
    let scale = weights.len() as f64 / total;
    let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let mut places: Vec<Place> =
        (0..shares.len() as u32).map(|other| Place { threshold: u32::MAX, other }).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..shares.len()).partition(|index| shares[*index] < 1.0);
    while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
        places[poor] =
            Place { threshold: (shares[poor] * 4_294_967_296.0) as u32, other: rich as u32 };
        shares[rich] -= 1.0 - shares[poor];
        if shares[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    places.into()
}

#[cfg(test)]
mod tests {
    use super::{Draw, Keys};
    use subak_base::Rng;

    fn counts(keys: &Keys, count: usize, draws: u32) -> Vec<f64> {
        let (draw, mut random) = (Draw::new(keys), Rng::new(5));
        let mut counts = vec![0.0; count];
        (0..draws).for_each(|_| counts[draw.draw(&mut random) as usize] += 1.0);
        counts
    }

    #[test]
    fn every_key_comes_as_often_as_it_should() {
        let harmonic: f64 = (1..=50).map(|rank| 1.0 / f64::from(rank)).sum();
        for (keys, shares) in [
            (Keys::Uniform { count: 4 }, vec![0.25; 4]),
            (Keys::Shared { people: vec![6, 0, 1, 3] }, vec![0.6, 0.0, 0.1, 0.3]),
            (
                Keys::Zipf { count: 50, exponent: 1.0 },
                (1..=50).map(|rank| 1.0 / f64::from(rank) / harmonic).collect(),
            ),
        ] {
            let draws = 400_000;
            for (found, share) in counts(&keys, shares.len(), draws).iter().zip(&shares) {
                let expected = share * f64::from(draws);
                let deviation = (expected * (1.0 - share)).sqrt();
                assert!(
                    (found - expected).abs() <= 5.0 * deviation,
                    "{keys:?}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_single_key_and_nobody_at_all_are_key_0() {
        for keys in [Keys::Uniform { count: 0 }, Keys::Shared { people: vec![] }] {
            assert_eq!(counts(&keys, 1, 10), [10.0]);
        }
    }
}
