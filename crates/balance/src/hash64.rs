//! The 64-bit hash of keys: XXH64. Frozen: the place of every client depends on it, on every node
//! and in every version.
//!
//! Input is read as little-endian words: four lanes over stripes of 32 bytes, then words of 8, 4 and
//! 1 byte, then a final mix. All arithmetic is modulo 2⁶⁴. A few nanoseconds for an address.
//!
//! | input | seed | XXH64 |
//! |---|---|---|
//! | nothing | 0 | `ef46db3751d8e999` |
//! | `abc` | 0 | `44bc2cf5ad770999` |
//! | `c0 00 02 01` (192.0.2.1) | 0 | `9c3163f48c1ed6ff` |
//!
//! Source: Collet, "xxHash fast digest algorithm", specification 0.1.1. Not for secrets: who knows
//! the seed can make collisions.

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

/// Bytes that the four lanes take at once.
const STRIPE: usize = 32;

/// XXH64 of `bytes`.
#[inline]
pub fn hash64(bytes: &[u8], seed: u64) -> u64 {
    let (stripes, mut rest) = bytes.split_at(bytes.len() - bytes.len() % STRIPE);
    let start = if stripes.is_empty() { seed.wrapping_add(PRIME_5) } else { lanes(stripes, seed) };
    let mut hash = start.wrapping_add(bytes.len() as u64);
    while let Some((word, after)) = rest.split_first_chunk() {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
        rest = after;
    }
    if let Some((word, after)) = rest.split_first_chunk() {
        hash ^= u64::from(u32::from_le_bytes(*word)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
        rest = after;
    }
    for byte in rest {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(PRIME_2);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIME_3);
    hash ^ hash >> 32
}

/// Whole stripes, each of its four words into a lane of its own.
fn lanes(stripes: &[u8], seed: u64) -> u64 {
    let mut lanes = [
        seed.wrapping_add(PRIME_1).wrapping_add(PRIME_2),
        seed.wrapping_add(PRIME_2),
        seed,
        seed.wrapping_sub(PRIME_1),
    ];
    let (words, _) = stripes.as_chunks::<8>();
    for stripe in words.chunks_exact(lanes.len()) {
        for (lane, word) in lanes.iter_mut().zip(stripe) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
    let joined = turned.fold(0, u64::wrapping_add);
    lanes.iter().fold(joined, |hash, lane| {
        (hash ^ round(0, *lane)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
    })
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

#[cfg(test)]
mod tests {
    use super::hash64;

    /// What the reference implementation gives (xxHash 0.8), over every branch of the length.
    #[test]
    fn equals_the_reference() {
        let count: Vec<u8> = (0..100).collect();
        let loopback = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[1]].concat();
        let vectors: [(&[u8], u64, u64); 9] = [
            (b"", 0xef46_db37_51d8_e999, 0xd5af_ba13_36a3_be4b),
            (b"a", 0xd24e_c4f1_a98c_6e5b, 0xdec2_bc81_c3cd_46c6),
            (b"abc", 0x44bc_2cf5_ad77_0999, 0xbea9_ca81_9932_8908),
            (b"message digest", 0x066e_d728_fcee_b3be, 0xcba4_34b6_417d_d0fd),
            (&[192, 0, 2, 1], 0x9c31_63f4_8c1e_d6ff, 0xfae3_d7af_e466_e83c),
            (&loopback, 0x97f1_1e06_85f6_7ae8, 0x7454_91ef_31c8_347e),
            (&count[..32], 0xcbf5_9c51_16ff_32b4, 0xd74e_6766_ce9d_ba94),
            (&count[..37], 0xd93f_a2df_ee5c_24c9, 0x31fe_76eb_4ff1_cf74),
            (&count, 0x6ac1_e580_3216_6597, 0x3d19_a3a2_098a_7023),
        ];
        for (bytes, plain, seeded) in vectors {
            assert_eq!(hash64(bytes, 0), plain, "{bytes:?}");
            assert_eq!(hash64(bytes, 1), seeded, "{bytes:?}");
        }
    }
}
