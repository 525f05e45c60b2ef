//! Bounds and noise, as every command writes them.

/// The noise of a query: `noise` with its sensitivity. Of a query of batches the multiplier, which does not depend on
/// the grid to which its sums are rounded, so that it is known before there is a model.
pub fn noise_in_words((noise, sensitivity): (f64, f64), multiplier: f64, sampling_rate: f64) -> String {
    match sampling_rate < 1.0 {
        false => format!("noise {} for sensitivity {}", up(noise), short(sensitivity)),
        true => format!("noise multiplier {}, sampling rate {}", up(multiplier), short(sampling_rate)),
    }
}

/// A bound to four decimals (four digits where it is small), never rounded down.
pub fn up(value: f64) -> String {
    if !value.is_finite() {
        return "infinite".into();
    }
    let (text, last_digit) = if value != 0.0 && value < 1e-2 {
        (format!("{value:.3e}"), 10f64.powf(value.log10().floor() - 3.0))
    } else {
        (format!("{value:.4}"), 1e-4)
    };
    if text.parse::<f64>().is_ok_and(|shown| shown < value) { up_from(value + last_digit) } else { text }
}

/// A bound that has been raised by a unit of its last digit, cut there.
fn up_from(raised: f64) -> String {
    if raised < 1e-2 { format!("{raised:.3e}") } else { format!("{raised:.4}") }
}

/// A public constant to a few digits.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
