//! Algorithm 5 of Ma & Chi as it is printed: the weights are sorted for every request, and the
//! slot is searched among the weights as if they were prefix sums.
//!
//! It lives here and nowhere else: at weights 1:1:1 and 2:1:1 it sends every request to the node of
//! index 1, whatever the hash. The balancer's `new_hash` keeps the paper's hash and not this search.
//! Line numbers are the paper's. Its loop over nodes also walks the octets, which is right only for
//! three nodes; here three octets are hashed always.

use std::net::Ipv4Addr;

/// The index of the node, from 0. `scratch` is the array that the paper makes for every request.
pub fn algorithm5_as_printed(client: Ipv4Addr, weights: &[u32], scratch: &mut Vec<u32>) -> usize {
    // Lines 1 to 7: the hash, and the copy of the weights.
    let hash = client.octets()[..3].iter().fold(89_u32, |hash, octet| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*octet)) ^ (hash >> 16)
    });
    scratch.clear();
    scratch.extend_from_slice(weights);
    let total: u32 = weights.iter().sum();
    // Line 8.
    scratch.sort_unstable();
    // Lines 9 to 23.
    let mut w = i64::from(hash % total.max(1));
    let (mut left, mut right) = (0_isize, weights.len() as isize - 1);
    let mut middle = 0;
    while left < right {
        middle = left + (right - left) / 2;
        w -= i64::from(scratch[middle as usize]);
        match w {
            ..0 => break,
            0 => right = middle - 1,
            _ => left = middle + 1,
        }
    }
    middle as usize
}

#[cfg(test)]
mod tests {
    use super::algorithm5_as_printed;
    use crate::hashing::clients::Clients;

    #[test]
    fn every_client_goes_to_the_node_of_index_1() {
        for weights in [[1, 1, 1], [2, 1, 1]] {
            for client in Clients::ALL.iter().flat_map(|clients| clients.draw(1)) {
                assert_eq!(algorithm5_as_printed(client, &weights, &mut Vec::new()), 1);
            }
        }
    }
}
