//! The time of an event as text.
//!
//! Only UTC and only what RFC 3339 needs; no time zones, no parsing, so no calendar package.

use std::time::{SystemTime, UNIX_EPOCH};

/// `time` in RFC 3339 (section 5.6), UTC, to the millisecond: `2026-01-02T03:04:05.006Z`. A clock that stands before
/// 1970 reads as 1970.
pub fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// Whether a text has the form that [`timestamp`] gives; such texts stand in the order of time.
pub(super) fn is_timestamp(text: &str) -> bool {
    let form = b"0000-00-00T00:00:00.000Z";
    let fits = |(form, byte): (&u8, u8)| if *form == b'0' { byte.is_ascii_digit() } else { *form == byte };
    text.len() == form.len() && form.iter().zip(text.bytes()).all(fits)
}

/// Year, month and day of a day since 1970-01-01, in the proleptic Gregorian calendar: "days to civil" of Howard
/// Hinnant's "chrono-compatible low-level date algorithms", for days that are not negative. A year starts in March
/// there, so that the leap day is the last one.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> String {
        timestamp(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn known_instants() {
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00.000Z");
        assert_eq!(at(1_234_567_890), "2009-02-13T23:31:30.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(timestamp(UNIX_EPOCH + Duration::from_millis(1_767_323_045_006)), "2026-01-02T03:04:05.006Z");
    }

    #[test]
    fn what_is_given_is_a_timestamp() {
        assert!(is_timestamp(&at(1_234_567_890)));
        for other in ["", "2009-02-13T23:31:30Z", "2009-02-13T23:31:30.000+", "2009-02-13 23:31:30.000Z", "\u{1b}"] {
            assert!(!is_timestamp(other), "{other}");
        }
    }

    #[test]
    fn before_the_epoch_is_the_epoch() {
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn days_follow_each_other_for_eight_centuries() {
        let length = |year: u64, month: u64| match month {
            2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut expected = (1970, 1, 1);
        for day in 0..365 * 800 {
            assert_eq!(civil(day), expected);
            let (year, month, day) = expected;
            expected = match (month, day) {
                _ if day < length(year, month) => (year, month, day + 1),
                (12, _) => (year + 1, 1, 1),
                _ => (year, month + 1, 1),
            };
        }
    }
}
