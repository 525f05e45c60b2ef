//! Where values lie on an axis, and which of them are written beside it.

/// Values from `from` to `to` on pixels from `start` to `end`.
pub struct Axis {
    pub from: f64,
    pub to: f64,
    pub start: f32,
    pub end: f32,
}

impl Axis {
    /// The pixel of a value.
    pub fn at(&self, value: f64) -> f32 {
        self.start + ((value - self.from) / (self.to - self.from)) as f32 * (self.end - self.start)
    }
}

/// The powers of ten between two numbers, thinned out to at most eight.
pub fn decades(low: f64, high: f64) -> Vec<i32> {
    let first = (low.log10() - 1e-9).ceil() as i32;
    let last = (high.log10() + 1e-9).floor() as i32;
    let stride = ((last - first) / 8 + 1).max(1);
    // Counted from the right, where the usual deltas are.
    let mut powers: Vec<i32> = (first..=last).rev().step_by(stride as usize).collect();
    powers.reverse();
    powers
}

/// Round numbers from 0 to at least `top`, at most seven of them.
pub fn round_steps(top: f64) -> Vec<f64> {
    let top = if top.is_finite() && top > 0.0 { top } else { 1.0 };
    let rough = top / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0 * power);
    let count = (top / step - 1e-9).ceil() as usize;
    (0..=count).map(|k| k as f64 * step).collect()
}

/// A number without needless digits.
pub fn plain(value: f64) -> String {
    if value == 0.0 {
        "0".into()
    } else if !(1e-3..1e6).contains(&value) {
        format!("{value:e}")
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// 10 with its exponent raised.
pub fn power_of_ten(power: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let mut text = String::from("10");
    for c in power.to_string().chars() {
        text.push(c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round() {
        assert_eq!(decades(1e-12, 1e-2), [-12, -10, -8, -6, -4, -2]);
        assert_eq!(round_steps(4.3), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(round_steps(0.09).last(), Some(&0.1));
        assert!(
            [0.0, f64::NAN, 1e300, 1e-300].into_iter().all(|top| (2..=8).contains(&round_steps(top).len()))
        );
        assert_eq!([power_of_ten(-12), plain(2.50), plain(0.0)], ["10⁻¹²", "2.5", "0"]);
    }
}
