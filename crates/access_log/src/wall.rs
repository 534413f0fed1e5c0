//! What time is it, as people write it? Ticks become dates; the text of a second is made once.
//!
//! The wall clock is read again when the last reading is a second old: it may be set meanwhile. Dates
//! by Howard Hinnant's `civil_from_days` (proleptic Gregorian, public domain).

use std::time::{SystemTime, UNIX_EPOCH};

use subak_base::Tick;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

const SECOND_NS: u64 = 1_000_000_000;

/// One worker's idea of the time. Ticks are its own, so nobody else is asked.
#[derive(Debug)]
pub(crate) struct Wall {
    /// Nanoseconds since 1970 at tick 0.
    origin_ns: u64,
    /// When the clock is to be read again.
    read_again: Tick,
    /// The second since 1970 that the texts are of.
    second: u64,
    /// `2026-11-21T17:12:33.000Z`
    iso: [u8; 24],
    /// `21/Nov/2026:17:12:33`
    day_first: [u8; 20],
}

/// A moment, ready to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) second: u64,
    pub(crate) millisecond: u16,
    pub(crate) iso: &'a [u8; 24],
    pub(crate) day_first: &'a [u8; 20],
}

impl Default for Wall {
    fn default() -> Wall {
        Wall {
            origin_ns: 0,
            read_again: Tick(0),
            second: u64::MAX,
            iso: *b"0000-00-00T00:00:00.000Z",
            day_first: [b'0'; 20],
        }
    }
}

impl Wall {
    /// The moment of `tick`, seen from `now`.
    #[inline]
    pub(crate) fn at(&mut self, tick: Tick, now: Tick) -> Moment<'_> {
        if now >= self.read_again {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.read(now, since.as_nanos() as u64);
        }
        let at = self.origin_ns.wrapping_add(tick.0);
        let second = at / SECOND_NS;
        if second != self.second {
            self.write(second);
        }
        Moment {
            second,
            millisecond: (at % SECOND_NS / 1_000_000) as u16,
            iso: &self.iso,
            day_first: &self.day_first,
        }
    }

    /// It is so many nanoseconds after 1970 at this tick.
    pub(crate) fn read(&mut self, now: Tick, since_1970_ns: u64) {
        self.origin_ns = since_1970_ns.saturating_sub(now.0);
        self.read_again = Tick(now.0 + SECOND_NS);
    }

    fn write(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = date(second / 86_400);
        let of_day = second % 86_400;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        let iso = &mut self.iso;
        digits(&mut iso[0..4], year);
        digits(&mut iso[5..7], month);
        digits(&mut iso[8..10], day);
        digits(&mut iso[11..13], hour);
        digits(&mut iso[14..16], minute);
        digits(&mut iso[17..19], second);
        let text = &mut self.day_first;
        digits(&mut text[0..2], day);
        text[2] = b'/';
        text[3..6].copy_from_slice(MONTHS[(month as usize - 1) % 12]);
        text[6] = b'/';
        digits(&mut text[7..11], year);
        text[11] = b':';
        text[12..20].copy_from_slice(&iso[11..19]);
    }
}

/// Year, month and day of a day since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// A number in as many digits as there is room for.
fn digits(room: &mut [u8], mut number: u64) {
    for place in room.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(second: u64) -> (String, String) {
        let mut wall = Wall::default();
        wall.read(Tick(0), second * SECOND_NS + 123_456_789);
        let moment = wall.at(Tick(0), Tick(0));
        assert_eq!((moment.second, moment.millisecond), (second, 123));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(&moment.iso[..19]), text(moment.day_first))
    }

    #[test]
    fn dates_are_right_on_both_sides_of_leap_days() {
        for (second, iso, day_first) in [
            (0, "1970-01-01T00:00:00", "01/Jan/1970:00:00:00"),
            (951_782_399, "2000-02-28T23:59:59", "28/Feb/2000:23:59:59"),
            (951_782_400, "2000-02-29T00:00:00", "29/Feb/2000:00:00:00"),
            (1_709_164_800, "2024-02-29T00:00:00", "29/Feb/2024:00:00:00"),
            (1_795_281_153, "2026-11-21T17:12:33", "21/Nov/2026:17:12:33"),
            (4_107_542_400, "2100-03-01T00:00:00", "01/Mar/2100:00:00:00"),
        ] {
            assert_eq!(shown(second), (iso.to_owned(), day_first.to_owned()));
        }
    }

    #[test]
    fn the_clock_is_read_once_a_second() {
        let mut wall = Wall::default();
        wall.read(Tick(0), 1000 * SECOND_NS);
        assert_eq!(wall.at(Tick(SECOND_NS / 2), Tick(SECOND_NS - 1)).second, 1000);
        // From now on by the real clock.
        assert!(wall.at(Tick(SECOND_NS), Tick(SECOND_NS)).second > 1_700_000_000);
    }
}
