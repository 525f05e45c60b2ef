//! Numbers with signs that people read past: `$1.20`, `12%`, `1,234.50`.

/// Whether a text is a number but for such signs.
pub(super) fn is_formatted(text: &str) -> bool {
    const CURRENCIES: [char; 5] = ['$', '€', '£', '¥', '₹'];
    let bare = text.trim().trim_start_matches(['-', '+']).trim_start_matches(CURRENCIES);
    let bare = bare.trim_end_matches(CURRENCIES).trim_end_matches('%').trim();
    let bare = bare.trim_start_matches(['-', '+']);
    let signed = is_number(bare) && (text.contains(CURRENCIES) || text.trim().ends_with('%'));
    signed || is_grouped(bare, ',', '.') || is_grouped(bare, '.', ',') || is_grouped(bare, '\'', '.')
}

/// Whether a text is digits, perhaps with a point among them.
pub(super) fn is_number(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) && text.trim().parse::<f64>().is_ok()
}

/// Whether a text is a number whose thousands are set apart by one sign, or whose fraction by another that is no point.
fn is_grouped(text: &str, thousands: char, point: char) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once(point).map_or((text, None), |(w, f)| (w, Some(f)));
    if !fraction.is_none_or(digits) {
        return false;
    }
    let mut groups = whole.split(thousands);
    let first = groups.next().unwrap_or_default();
    let grouped = whole.contains(thousands)
        && first.len() <= 3
        && digits(first)
        && groups.all(|group| group.len() == 3 && digits(group));
    grouped || point == ',' && fraction.is_some() && digits(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_signs_are_told_from_names() {
        for text in [
            "$1.20", "-$3", "$-3", "12%", "-4.5 %", "1,234.50", "12,345", "1.234,50", "3,5", "€ 7", "7€",
            "1'000",
        ] {
            assert!(is_formatted(text), "{text}");
        }
        for text in [
            "1.20", "12", "1,2,3", "1.2.3", "10-20", "a%", "$", "%", "", "1 2", "3A", "1,23,456", "AB12%",
            "C$",
        ] {
            assert!(!is_formatted(text), "{text}");
        }
    }
}
