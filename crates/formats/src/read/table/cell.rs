//! One cell of a table, as the file has it.

use crate::Problem;

/// A result whose error does not know yet which cell it concerns.
pub(super) type Checked<T> = std::result::Result<T, Problem>;

/// The content of a cell. Text files do not say what a cell means; Parquet files do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Nothing: an empty field, a null.
    Empty,
    /// Text that may stand for a number or a truth value.
    Untyped(&'a str),
    /// Text, even where it looks like a number.
    Text(&'a str),
    /// An integer.
    Integer(i64),
    /// An integer of 64 bits without a sign.
    Unsigned(u64),
    /// A number with a fraction.
    Number(f64),
    /// A truth value.
    Bool(bool),
}

impl Cell<'_> {
    /// Calls `with` with the cell as a name (an id, a class, a category); an empty cell has none.
    ///
    /// Numbers without a fraction are named as integers: tools turn integer columns with gaps into fractions.
    pub(super) fn named<T>(self, with: impl FnOnce(Option<&str>) -> T) -> T {
        match self {
            Cell::Empty => with(None),
            Cell::Untyped(text) | Cell::Text(text) => with(Some(text).filter(|text| !text.is_empty())),
            Cell::Integer(value) => with(Some(&value.to_string())),
            Cell::Unsigned(value) => with(Some(&value.to_string())),
            Cell::Number(value) if value.is_nan() => with(None),
            Cell::Number(value) => match whole(value) {
                Some(value) => with(Some(&value.to_string())),
                None => with(Some(&value.to_string())),
            },
            Cell::Bool(value) => with(Some(if value { "true" } else { "false" })),
        }
    }
}

/// The integer that a number is, where it is one exactly.
pub(super) fn whole(value: f64) -> Option<i64> {
    const EXACT: f64 = (1u64 << 53) as f64;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

/// The integer that a text is, in the one spelling that integers are written in: `7`, never `007` or `+7`.
pub(super) fn canonical_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] | [b'0', _, ..] => return None,
        [b'0'] if negative => return None,
        _ => {}
    }
    // Eighteen digits cannot overflow, so the common case is a plain loop.
    if digits.len() > 18 {
        return std::str::from_utf8(text)
            .ok()
            .filter(|_| digits.iter().all(u8::is_ascii_digit))?
            .parse()
            .ok();
    }
    let mut value = 0i64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_one_spelling() {
        for value in [0, 1, -1, 10, 999_999_999_999_999_999, i64::MAX, i64::MIN] {
            assert_eq!(canonical_integer(value.to_string().as_bytes()), Some(value));
        }
        let others = ["", "-", "-0", "007", "+7", " 7", "7 ", "7.0", "0x7", "9223372036854775808", "7a"];
        for text in others {
            assert_eq!(canonical_integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_without_a_fraction_are_named_as_integers() {
        let name = |cell: Cell| cell.named(|name| name.map(str::to_string));
        assert_eq!(name(Cell::Number(3.0)).as_deref(), Some("3"));
        assert_eq!(name(Cell::Number(-0.0)).as_deref(), Some("0"));
        assert_eq!(name(Cell::Number(0.5)).as_deref(), Some("0.5"));
        assert_eq!(name(Cell::Number(f64::NAN)), None);
        assert_eq!(name(Cell::Unsigned(u64::MAX)).as_deref(), Some("18446744073709551615"));
        assert_eq!(name(Cell::Text("")), None);
    }
}
