//! Numbers as text: digits by twos from a table, written as a word.

use std::io::Write;
use std::net::IpAddr;

use crate::page::Page;

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// `00` to `ff`.
static HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut number = 0;
    while number < 256 {
        pairs[number] = [digits[number >> 4], digits[number & 15]];
        number += 1;
    }
    pairs
};

/// `0.` to `255.`, and how long that is.
static OCTETS: [([u8; 4], u8); 256] = {
    let mut octets = [([b'.'; 4], 0); 256];
    let mut number = 0;
    while number < 256 {
        let (mut digits, mut rest) = (
            if number < 10 {
                1
            } else if number < 100 {
                2
            } else {
                3
            },
            number,
        );
        octets[number].1 = digits + 1;
        while digits > 0 {
            digits -= 1;
            octets[number].0[digits as usize] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        number += 1;
    }
    octets
};

/// Three digits.
#[inline]
pub(crate) fn three(number: u16) -> [u8; 3] {
    let [tens, ones] = PAIRS[usize::from(number % 100)];
    [b'0' + (number / 100 % 10) as u8, tens, ones]
}

/// `1234`
#[inline]
pub(crate) fn decimal(number: u64, page: &mut Page) {
    if number < 10 {
        page.byte(b'0' + number as u8);
    } else if number < 10_000 {
        let number = number as u32;
        let ([a, b], [c, d]) = (PAIRS[(number / 100) as usize], PAIRS[(number % 100) as usize]);
        let absent = u32::from(number < 1000) + u32::from(number < 100);
        let word = u32::from_le_bytes([a, b, c, d]) >> (8 * absent);
        page.put(&word.to_le_bytes(), 4 - absent as usize);
    } else {
        page.extend(itoa::Buffer::new().format(number).as_bytes());
    }
}

/// `1.234`: a thousandth of the unit is the last digit.
#[inline]
pub(crate) fn thousandths(whole_and_rest: u64, page: &mut Page) {
    decimal(whole_and_rest / 1000, page);
    let [a, b, c] = three((whole_and_rest % 1000) as u16);
    page.put(&[b'.', a, b, c], 4);
}

/// An address without a port.
#[inline]
pub(crate) fn ip(address: IpAddr, page: &mut Page) {
    match address {
        IpAddr::V4(address) => {
            let octets = address.octets().map(|octet| &OCTETS[usize::from(octet)]);
            for (text, length) in &octets[..3] {
                page.put(text, usize::from(*length));
            }
            let (text, length) = octets[3];
            page.put(text, usize::from(*length) - 1);
        }
        IpAddr::V6(address) => {
            let mut text = [0; 46];
            let mut rest = &mut text[..];
            // The longest there is has 45 characters.
            let _ = write!(rest, "{address}");
            let length = 46 - rest.len();
            page.extend(&text[..length]);
        }
    }
}

/// 16 hexadecimal digits.
#[inline]
pub(crate) fn hex(number: u64, page: &mut Page) {
    let mut text = [0; 16];
    for (place, byte) in text.as_chunks_mut().0.iter_mut().zip(number.to_be_bytes()) {
        *place = HEX[usize::from(byte)];
    }
    page.put(&text, 16);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(page: &mut Page, write: impl FnOnce(&mut Page)) -> String {
        page.clear();
        write(page);
        String::from_utf8(page.written().to_vec()).unwrap()
    }

    #[test]
    fn numbers_are_what_the_standard_library_makes_of_them() {
        let page = &mut Page::default();
        let mut random = subak_base::Rng::new(1);
        for turn in 0..2_000u64 {
            let large = random.next_u64();
            for number in [turn, turn * 7, large, large >> (turn % 64), u64::MAX] {
                assert_eq!(shown(page, |page| decimal(number, page)), number.to_string());
                assert_eq!(shown(page, |page| hex(number, page)), format!("{number:016x}"));
                let expected = format!("{}.{:03}", number / 1000, number % 1000);
                assert_eq!(shown(page, |page| thousandths(number, page)), expected);
            }
            let four = IpAddr::from((large as u32).to_be_bytes());
            let six = IpAddr::from((u128::from(large) << (turn % 65)).to_be_bytes());
            for address in [four, six] {
                assert_eq!(shown(page, |page| ip(address, page)), address.to_string());
            }
        }
        for octet in 0..=255 {
            let address = IpAddr::from([octet, 0, octet, octet]);
            assert_eq!(shown(page, |page| ip(address, page)), address.to_string());
        }
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(shown(page, |page| ip(longest.parse().unwrap(), page)), longest);
    }
}
