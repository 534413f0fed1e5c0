//! Exponential and logarithm in whole numbers, by tables: the same on every machine.
//!
//! The tables are worked out when the crate is compiled, and by whole numbers too.

/// 1 in the fixed point of [`half_to`] and of [`minus_log2`].
pub(crate) const ONE: u64 = 1 << 32;

/// Steps of the tables to a power of two.
const STEPS: usize = 64;

/// 2^(−k/64) in 2⁻³².
const HALVES: [u64; STEPS + 1] = halves();

/// log₂(1 + k/256) in 2⁻³².
const LOGARITHMS: [u64; 257] = logarithms();

/// 2^(−`over` ÷ `under`) in 2⁻³², by linear interpolation: off by less than 2·10⁻⁵ of its value.
/// `under` is below 2²⁶.
#[inline]
pub(crate) fn half_to(over: u64, under: u64) -> u64 {
    let whole = over / under;
    if whole >= 64 {
        return 0;
    }
    // The rest as a place in the table, in 2⁻³² of a step.
    let place = ((over % under) << 38) / under;
    let (step, within) = ((place >> 32) as usize, place & (ONE - 1));
    let (here, next) = (HALVES[step], HALVES[step + 1]);
    (here - (((here - next) * within) >> 32)) >> whole
}

/// −log₂(`fraction` ÷ 2⁶⁴) in 2⁻³², for a fraction above 0: from 0 to 64, falling as the fraction
/// grows, off by less than 3·10⁻⁶.
#[inline]
pub(crate) fn minus_log2(fraction: u64) -> u64 {
    let zeros = u64::from(fraction.leading_zeros());
    // 1.xxx with 63 bits behind the point, the leading 1 taken off.
    let mantissa = fraction << zeros << 1;
    let (step, within) = ((mantissa >> 56) as usize, mantissa << 8 >> 32);
    let (here, next) = (LOGARITHMS[step], LOGARITHMS[step + 1]);
    let logarithm = here + (((next - here) * within) >> 32);
    ((zeros + 1) << 32) - logarithm
}

const fn halves() -> [u64; STEPS + 1] {
    // 2^(−1/64) in 2⁻⁶⁴. 64 roundings of 2⁻⁶⁴ do not reach the 32 bits that are kept.
    let root: u128 = 18_248_035_989_933_441_396;
    let mut table = [0; STEPS + 1];
    let mut power: u128 = 1 << 64;
    let mut step = 0;
    while step <= STEPS {
        table[step] = ((power + (1 << 31)) >> 32) as u64;
        power = (power * root) >> 64;
        step += 1;
    }
    table
}

const fn logarithms() -> [u64; 257] {
    let mut table = [0; 257];
    let mut step = 0;
    while step <= 256 {
        table[step] = log2(256 + step as u64);
        step += 1;
    }
    table
}

/// log₂(n/256) in 2⁻³² for n from 256 to 512: one bit for each squaring.
const fn log2(n: u64) -> u64 {
    if n == 512 {
        return ONE;
    }
    // n/256 in 2⁻⁶³.
    let mut number: u128 = (n as u128) << 55;
    let (mut logarithm, mut bit) = (0, 0);
    while bit < 32 {
        number = (number * number) >> 63;
        logarithm <<= 1;
        if number >> 64 == 1 {
            number >>= 1;
            logarithm |= 1;
        }
        bit += 1;
    }
    logarithm
}

#[cfg(test)]
mod tests {
    use super::{ONE, half_to, minus_log2};
    use subak_base::Rng;

    #[test]
    fn halves_for_each_unit() {
        assert_eq!(
            [0, 1, 2, 31, 64].map(|n| half_to(n * 300, 300)),
            [ONE, ONE >> 1, ONE >> 2, 2, 0]
        );
    }

    #[test]
    fn is_as_near_to_the_exponential_as_promised_and_never_rises() {
        let mut last = ONE;
        for over in 0..6_000 {
            let found = half_to(over, 300);
            assert!(found <= last);
            last = found;
            let exact = (-(over as f64) / 300.0).exp2() * ONE as f64;
            assert!((found as f64 - exact).abs() <= exact * 2e-5 + 1.0, "{over}: {found} {exact}");
        }
    }

    #[test]
    fn is_as_near_to_the_logarithm_as_promised_and_never_rises() {
        assert_eq!(minus_log2(1 << 63), ONE);
        assert_eq!(minus_log2(1), 64 << 32);
        assert!(minus_log2(u64::MAX) < ONE >> 20);
        let mut rng = Rng::new(1);
        let mut words: Vec<u64> = (0..100_000).map(|_| rng.next_u64() >> rng.below(64)).collect();
        words.retain(|word| *word > 0);
        words.sort_unstable();
        let mut last = u64::MAX;
        for word in words {
            let found = minus_log2(word);
            assert!(found <= last);
            last = found;
            let exact = 64.0 - (word as f64).log2();
            let error = (found as f64 / ONE as f64 - exact).abs();
            assert!(error < 3e-6, "{word}: {error}");
        }
    }
}
