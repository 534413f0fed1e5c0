//! CRC-32 (IEEE 802.3, reflected), which nginx places keys with. Table of 256, a byte a step.

const POLYNOMIAL: u32 = 0xEDB8_8320;
const TABLE: [u32; 256] = table();

/// A checksum under way.
#[derive(Clone, Copy)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    /// Of nothing yet.
    pub(crate) const START: Crc32 = Crc32(u32::MAX);

    #[inline]
    pub(crate) fn update(mut self, bytes: &[u8]) -> Crc32 {
        for byte in bytes {
            let place = (self.0 ^ u32::from(*byte)) & 0xFF;
            self.0 = TABLE[place as usize] ^ self.0 >> 8;
        }
        self
    }

    pub(crate) fn finish(self) -> u32 {
        !self.0
    }
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::Crc32;

    #[test]
    fn equals_the_published_check_value() {
        assert_eq!(Crc32::START.update(b"123456789").finish(), 0xCBF4_3926);
        assert_eq!(Crc32::START.finish(), 0);
        assert_eq!(Crc32::START.update(b"1234").update(b"56789").finish(), 0xCBF4_3926);
    }
}
