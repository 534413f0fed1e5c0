//! CRC32c (Castagnoli), as version 2 of the PROXY protocol has it: RFC 4960, appendix B.
//!
//! A byte at a time by a table of 1 KiB: headers have some hundred bytes, once a connection.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ 0x82F6_3B78 } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// The checksum of all these bytes together.
pub(super) fn of<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    let step = |rest: u32, byte: &u8| TABLE[(rest as u8 ^ byte) as usize] ^ rest >> 8;
    !bytes.into_iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #[test]
    fn has_the_values_of_rfc_3720() {
        assert_eq!(super::of(b"123456789"), 0xE306_9283);
        assert_eq!(super::of(&[0; 32]), 0x8A91_36AA);
        assert_eq!(super::of(&[0xff; 32]), 0x62A8_AB43);
        assert_eq!(super::of(b""), 0);
    }
}
