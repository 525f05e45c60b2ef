//! Dates as tables spell them, in days.

use crate::read::columns::DateOrder;

/// Days from 1970-01-01 to 2000-01-01, from which days are counted: near enough that 32 bits tell minutes apart.
pub(super) const EPOCH: f64 = 10_957.0;

/// The days since 2000-01-01 of a date such as `2024-02-29`, `2024/02/29`, or one with a time: `2024-02-29
/// 13:05:00.5Z`, `2024-02-29T13:05+01:00`.
pub(super) fn days(text: &str) -> Option<f64> {
    days_in(text, DateOrder::YearFirst)
}

/// The same for dates in another order, such as `29/02/2024`, `29.2.2024` or `02/29/2024`.
pub(super) fn days_in(text: &str, order: DateOrder) -> Option<f64> {
    let text = text.trim_ascii();
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let separator = date.chars().find(|sign| !sign.is_ascii_digit())?;
    let mut parts = date.split(separator);
    let [first, second, third] = [parts.next()?, parts.next()?, parts.next()?];
    let short = |part: &str| (1..=2).contains(&part.len());
    let whole = match (parts.next(), order) {
        (Some(_), _) => return None,
        // Years first come with two digits for month and day.
        (_, DateOrder::YearFirst) => {
            let is_right =
                matches!(separator, '-' | '/') && [first, second, third].map(str::len) == [4, 2, 2];
            whole_days(number(first)?, number(second)?, number(third)?).filter(|_| is_right)?
        }
        (_, DateOrder::DayFirst | DateOrder::MonthFirst) => {
            // With points the day comes first wherever people write so.
            let is_right = match separator {
                '-' | '/' => true,
                '.' => order == DateOrder::DayFirst,
                _ => false,
            };
            let (day, month) = if order == DateOrder::DayFirst { (first, second) } else { (second, first) };
            let is_right = is_right && short(first) && short(second) && third.len() == 4;
            whole_days(number(third)?, number(month)?, number(day)?).filter(|_| is_right)?
        }
    };
    Some(whole + time.map_or(Some(0.0), time_of_day)?)
}

/// The order of the dates in a column, where most of its values are dates.
#[derive(Debug, PartialEq)]
pub(super) enum Dates {
    /// Most are none.
    No,
    /// Most are dates in this order.
    In(DateOrder),
    /// Most are dates in either of two orders.
    Either,
}

/// Whether most of some texts, each with how often it stands there, are dates.
pub(super) fn recognise<'a>(texts: impl Iterator<Item = (&'a str, usize)>) -> Dates {
    let orders = [DateOrder::YearFirst, DateOrder::DayFirst, DateOrder::MonthFirst];
    let (mut counts, mut all) = ([0usize; 3], 0);
    for (text, times) in texts {
        all += times;
        for (count, order) in counts.iter_mut().zip(orders) {
            *count += if days_in(text, order).is_some() { times } else { 0 };
        }
    }
    let most = counts.into_iter().max().unwrap_or(0);
    if 2 * most <= all {
        return Dates::No;
    }
    let mut best = orders.into_iter().zip(counts).filter(|(_, count)| *count == most);
    match (best.next(), best.next()) {
        (Some((order, _)), None) => Dates::In(order),
        _ => Dates::Either,
    }
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

    #[test]
    fn days_or_months_may_come_first() {
        use DateOrder::{DayFirst, MonthFirst};
        for (text, order) in [
            ("29/02/2024", DayFirst),
            ("29.2.2024", DayFirst),
            ("29-02-2024", DayFirst),
            ("02/29/2024", MonthFirst),
            ("2-29-2024 00:00", MonthFirst),
        ] {
            assert_eq!(days_in(text, order), Some(8825.0), "{text}");
        }
        for (text, order) in [
            ("02/29/2024", DayFirst),
            ("29/02/24", DayFirst),
            ("2.29.2024", MonthFirst),
            ("2024-02-29", DayFirst),
        ] {
            assert_eq!(days_in(text, order), None, "{text}");
        }
        let found = |texts: &[&str]| recognise(texts.iter().map(|text| (*text, 1)));
        assert_eq!(found(&["03/04/2020", "25/04/2020"]), Dates::In(DayFirst));
        assert_eq!(found(&["03/04/2020", "04/25/2020"]), Dates::In(MonthFirst));
        assert_eq!(found(&["03/04/2020", "05/04/2020"]), Dates::Either);
        assert_eq!(found(&["03.04.2020", "05.04.2020"]), Dates::In(DayFirst));
        assert_eq!(found(&["2020-04-03", "2020-02-31", "2020-04-05"]), Dates::In(DateOrder::YearFirst));
        assert_eq!(found(&["2020-04-03", "soon"]), Dates::No);
    }
}
