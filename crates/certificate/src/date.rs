//! Dates as people read them: `2027-02-28 13:45 UTC`.

use std::time::SystemTime;

use x509_parser::time::ASN1Time;

/// A moment, to the minute.
pub fn date(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let Ok(time) = ASN1Time::from_timestamp(seconds) else { return "the end of time".into() };
    let time = time.to_datetime();
    let (date, hour, minute) = (time.date(), time.hour(), time.minute());
    format!(
        "{:04}-{:02}-{:02} {hour:02}:{minute:02} UTC",
        date.year(),
        u8::from(date.month()),
        date.day()
    )
}
