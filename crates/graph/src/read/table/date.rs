//! Dates as tables spell them, in days.

/// Days from 1970-01-01 to 2000-01-01, from which days are counted: near enough that 32 bits tell minutes apart.
pub(super) const EPOCH: f64 = 10_957.0;

/// The days since 2000-01-01 of a date such as `2024-02-29`, `2024/02/29`, or one with a time: `2024-02-29 13:05:00.5Z`,
/// `2024-02-29T13:05+01:00`.
pub(super) fn days(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let date = text.get(..10)?;
    let separator = date.as_bytes()[4];
    if !matches!(separator, b'-' | b'/') || date.as_bytes()[7] != separator {
        return None;
    }
    let (year, month, day) = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    let whole = whole_days(year, month, day)?;
    let share = match text.get(10..)? {
        "" => 0.0,
        time => time_of_day(time.strip_prefix(['T', ' '])?)?,
    };
    Some(whole + share)
}

fn number(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn whole_days(year: u32, month: u32, day: u32) -> Option<f64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(month.checked_sub(1)? as usize)?;
    if day == 0 || day > length {
        return None;
    }
    let years = i64::from(year) - 1;
    let before = years * 365 + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let in_year = lengths[..month as usize - 1].iter().sum::<u32>() + day - 1;
    // 2000-01-01 is the day 730,119 after 0001-01-01.
    Some((before + i64::from(in_year) - 730_119) as f64)
}

/// The share of a day: `13:05`, `13:05:00`, `13:05:00.25`, each perhaps with `Z` or an offset such as `+01:00`.
fn time_of_day(time: &str) -> Option<f64> {
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0.0),
        None => match time.rfind(['+', '-']) {
            Some(at) => {
                let offset = minutes(&time[at + 1..])?;
                (&time[..at], if time.as_bytes()[at] == b'-' { -offset } else { offset })
            }
            None => (time, 0.0),
        },
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second: f64 = match parts.next() {
        None => 0.0,
        Some(second) => {
            let plain = second.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            plain.then(|| second.parse().ok()).flatten()?
        }
    };
    if hour > 24 || minute > 59 || second >= 61.0 {
        return None;
    }
    Some((f64::from(hour) * 60.0 + f64::from(minute) + second / 60.0 - offset) / 1440.0)
}

/// An offset in minutes: `01:00`, `0100` or `01`.
fn minutes(offset: &str) -> Option<f64> {
    let (hours, minutes) = match offset.split_once(':') {
        Some(parts) => parts,
        None if offset.len() == 4 => offset.split_at_checked(2)?,
        None => (offset, "0"),
    };
    Some(f64::from(number(hours)?) * 60.0 + f64::from(number(minutes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days are those of Python's `datetime.date.toordinal`.
    #[test]
    fn dates_are_days() {
        for (text, expected) in [
            ("2000-01-01", 0.0),
            ("1970-01-01", -EPOCH),
            ("2024-02-29", 8825.0),
            ("1900-03-01", -36465.0),
            ("0001-01-01", -730_119.0),
            ("2024/02/29 12:00", 8825.5),
            ("2024-02-29T12:00:00.0Z", 8825.5),
            ("2024-02-29 01:00+01:00", 8825.0),
            ("2024-02-29 00:00:30", 8825.0 + 30.0 / 86400.0),
            ("2024-02-28T23:00:00-0100", 8825.0),
        ] {
            let found = days(text).expect(text);
            assert!((found - expected).abs() < 1e-9, "{text}: {found}");
        }
        for bad in [
            "",
            "2024",
            "2024-02-30",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-1-01",
            "20240229",
            "2024-02-29x",
            "2024-02-29 25:00",
            "2024-02-29T",
            "2024-02-29 12",
            "2024-02/29",
            "é024-02-29",
            "2024-02-29 12:00:",
            "12:00",
        ] {
            assert_eq!(days(bad), None, "{bad}");
        }
    }
}
