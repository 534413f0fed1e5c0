//! Weights as whole places: how many of so many each endpoint gets.

use crate::weights::gcd;

/// The weights divided by their greatest common divisor; where that is more than `places_max` in
/// all, so many divided by largest remainder, at least 1 for each weight that is not 0. (One each,
/// if there are more weights than places.)
pub(crate) fn reduced(weights: &[u64], places_max: usize) -> Vec<u64> {
    let divided = |weights: &[u64]| -> Vec<u64> {
        let divisor = weights.iter().copied().fold(0, gcd).max(1);
        weights.iter().map(|weight| weight / divisor).collect()
    };
    let shares = divided(weights);
    match shares.iter().sum::<u64>() <= places_max as u64 {
        true => shares,
        false => divided(&rounded(weights, places_max)),
    }
}

/// The weights as they are; where that is more than `places_max` in all, rounded as by [`reduced`].
pub(crate) fn limited(weights: &[u64], places_max: usize) -> Vec<u64> {
    match weights.iter().sum::<u64>() <= places_max as u64 {
        true => weights.to_vec(),
        false => rounded(weights, places_max),
    }
}

/// Divides `places` among the weights by largest remainder, at least 1 for each that is not 0.
pub(crate) fn rounded(weights: &[u64], places: usize) -> Vec<u64> {
    let mut shares = vec![0; weights.len()];
    let mut rising: Vec<usize> = (0..weights.len()).filter(|index| weights[*index] > 0).collect();
    rising.sort_by_key(|index| weights[*index]);

    // The smallest first: whoever is due less than one whole place gets one, and the rest share.
    let total: u64 = weights.iter().sum();
    let (mut places, mut weight) = ((places as u64).max(rising.len() as u64), total);
    let small = rising.iter().take_while(|index| {
        let is_small = weights[**index] * places < weight;
        if is_small {
            shares[**index] = 1;
            places -= 1;
            weight -= weights[**index];
        }
        is_small
    });
    let rest = &rising[small.count()..];

    let mut left = places;
    for index in rest {
        shares[*index] = weights[*index] * places / weight;
        left -= shares[*index];
    }
    let mut by_remainder = rest.to_vec();
    by_remainder
        .sort_by_key(|index| (std::cmp::Reverse(weights[*index] * places % weight), *index));
    by_remainder.iter().take(left as usize).for_each(|index| shares[*index] += 1);
    shares
}

/// How many of the hashes 0 to `hashes` - 1 lead to each weight where h modulo the sum of weights is the
/// place on a wheel of all weights in a row.
pub(crate) fn of_hashes(weights: &[u64], hashes: u64) -> Vec<u64> {
    let total: u64 = weights.iter().sum();
    let (turns, rest) = (hashes.checked_div(total).unwrap_or(0), hashes.checked_rem(total));
    let mut left = rest.unwrap_or(0);
    let of = |weight: &u64| {
        let more = left.min(*weight);
        left -= more;
        turns * weight + more
    };
    weights.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::{limited, reduced};
    use proptest::prelude::*;

    const PLACES: usize = 65_536;

    proptest! {
        #[test]
        fn weights_with_too_many_places_are_rounded_to_the_nearest(
            weights in prop::collection::vec(0_u64..=65_535, 2..200),
        ) {
            let rounded = limited(&weights, PLACES);
            let total = weights.iter().sum::<u64>() as f64;
            let places = rounded.iter().sum::<u64>() as f64;
            prop_assert_eq!(places, total.min(PLACES as f64));
            let is_small = |weight: &&u64| **weight > 0 && **weight as f64 * PLACES as f64 <= total;
            let small = weights.iter().filter(is_small).count() as f64;
            for (weight, share) in weights.iter().zip(&rounded) {
                let due = *weight as f64 * places / total;
                // Those below one place get one; the others pay for that, each in proportion.
                let paid = due * small / (places - small);
                let off = *share as f64 - due;
                prop_assert!(off < 1.0 && off > -1.0 - paid, "{} for {}", share, due);
                prop_assert_eq!(*weight == 0, *share == 0);
            }
        }

        #[test]
        fn weights_that_fit_are_only_divided(
            weights in prop::collection::vec(0_u64..300, 1..200), factor in 1_u64..200,
        ) {
            let scaled: Vec<_> = weights.iter().map(|weight| weight * factor).collect();
            prop_assert_eq!(reduced(&scaled, PLACES), reduced(&weights, PLACES));
            prop_assert_eq!(limited(&weights, PLACES), weights);
        }
    }

    #[test]
    fn more_weights_than_places_get_one_each() {
        assert_eq!(reduced(&[3, 1, 2, 0, 9], 3), [1, 1, 1, 0, 1]);
    }
}
