//! Where values lie on an axis, and which of them are written beside it.

use crate::report::{Axis, Number, Scale};

/// An axis laid out: values from `from` to `to`, the places from `start` to `end`, the values written beside it.
pub struct Ruler {
    from: f64,
    to: f64,
    log: bool,
    start: f32,
    end: f32,
    /// The values written beside it, with how they are written.
    pub ticks: Vec<(f64, String)>,
}

impl Ruler {
    /// Lays out an axis for these values, with at most this many ticks. Places follow with [`Ruler::between`].
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>, most: usize) -> Ruler {
        let log = axis.scale == Scale::Log;
        let usable = |value: &f64| value.is_finite() && (!log || *value > 0.0);
        let values = values.chain(axis.ticks.iter().copied()).filter(usable);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = match axis.range {
            Some(range) => range,
            None if low < high => (low, high),
            None if low.is_finite() && log => (0.5 * low, 2.0 * low),
            None if low.is_finite() => (low - 0.5 * low.abs().max(0.1), low + 0.5 * low.abs().max(0.1)),
            None if log => (0.1, 10.0),
            None => (0.0, 1.0),
        };
        let (low, high) = if log { (low.log10(), high.log10()) } else { (low, high) };
        let (from, to, ticks) = match (log, axis.ticks.is_empty()) {
            (_, false) => {
                let room = if axis.range.is_some() { 0.0 } else { 0.04 * (high - low) };
                let ticks = axis.ticks.iter().map(|&tick| (tick, write(tick, axis.number))).collect();
                (low - room, high + room, ticks)
            }
            (true, true) => (low, high, decades(low, high, most)),
            (false, true) => {
                let steps = round_steps(low, high, most);
                let outer = |end: Option<&f64>, other: f64| end.copied().unwrap_or(other);
                let (first, last) = match axis.range {
                    Some(range) => range,
                    None => (outer(steps.first(), low), outer(steps.last(), high)),
                };
                let inside = |tick: &f64| (first - 1e-9..=last + 1e-9).contains(tick);
                let digits = digits(&steps, axis.number);
                let text = |tick: f64| match axis.number {
                    Number::Percent => format!("{:.digits$} %", 100.0 * tick),
                    Number::Plain => plain(tick),
                };
                (first, last, steps.into_iter().filter(inside).map(|tick| (tick, text(tick))).collect())
            }
        };
        Ruler { from, to, log, start: 0.0, end: 1.0, ticks }
    }

    /// The same between two places.
    #[must_use]
    pub fn between(self, start: f32, end: f32) -> Ruler {
        Ruler { start, end, ..self }
    }

    /// The place of a value.
    pub fn at(&self, value: f64) -> f32 {
        let value = if self.log { value.log10() } else { value };
        self.start + ((value - self.from) / (self.to - self.from)) as f32 * (self.end - self.start)
    }

    /// Whether a value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        let value = if self.log { value.log10() } else { value };
        let room = 1e-9 * (self.to - self.from);
        value.is_finite() && (self.from - room..=self.to + room).contains(&value)
    }

    /// The nearest value that lies on the axis.
    pub fn clamp(&self, value: f64) -> f64 {
        if self.log {
            value.clamp(10f64.powf(self.from), 10f64.powf(self.to))
        } else {
            value.clamp(self.from, self.to)
        }
    }
}

/// A value as it is read out: with more digits than an axis needs.
pub fn write(value: f64, number: Number) -> String {
    match number {
        Number::Percent => {
            let text = format!("{:.2}", 100.0 * value);
            format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Number::Plain => plain(value),
    }
}

/// The powers of ten between two exponents, thinned out; with less than two of them, 1, 2 and 5 times them.
fn decades(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let (first, last) = ((low - 1e-9).ceil() as i32, (high + 1e-9).floor() as i32);
    if last - first < 1 {
        let steps = (low.floor() as i32..=high.ceil() as i32)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|times| times * 10f64.powi(power)))
            .filter(|value| (low - 1e-9..=high + 1e-9).contains(&value.log10()));
        return steps.map(|value| (value, plain(value))).collect();
    }
    let stride = (last - first) / most.max(1) as i32 + 1;
    // Counted from the right, where the usual deltas are.
    let mut powers: Vec<i32> = (first..=last).rev().step_by(stride as usize).collect();
    powers.reverse();
    powers.into_iter().map(|power| (10f64.powi(power), power_of_ten(power))).collect()
}

/// Round numbers around two, in equal steps, about `most` of them.
fn round_steps(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.max(2) as f64;
    if !(rough.is_finite() && rough > f64::MIN_POSITIVE * 1e3) {
        return vec![low, high];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|times| times * power);
    let step = step.into_iter().find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(10.0 * power);
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    (0..=(last - first).min(100.0) as usize).map(|k| (first + k as f64) * step).collect()
}

/// How many digits after the point tell these apart.
fn digits(steps: &[f64], number: Number) -> usize {
    let scale = if number == Number::Percent { 100.0 } else { 1.0 };
    let exact = |digits: usize| {
        let unit = 10f64.powi(digits as i32);
        steps.iter().all(|step| ((scale * step * unit).round() / unit - scale * step).abs() < 1e-9 * scale)
    };
    (0..4).find(|&digits| exact(digits)).unwrap_or(4)
}

/// A number without needless digits.
pub fn plain(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || size < 1e-12 {
        "0".into()
    } else if !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.3e}");
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{power}", mantissa.trim_end_matches('0').trim_end_matches('.'))
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
    }
}

/// 10 with its exponent raised.
fn power_of_ten(power: i32) -> String {
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

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        Ruler::new(axis, values.iter().copied(), 6).ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn labels_are_round() {
        let log = Axis::log("delta", vec![]);
        assert_eq!(labels(&log, &[1e-12, 1e-2]), ["10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²"]);
        assert_eq!(labels(&log, &[1.0, 8.0]), ["1", "2", "5"]);
        assert_eq!(labels(&Axis::linear("n").within(0.0, 4.3), &[]), ["0", "1", "2", "3", "4"]);
        assert_eq!(
            labels(&Axis::percent("share"), &[0.62, 0.81]),
            ["60 %", "65 %", "70 %", "75 %", "80 %", "85 %"]
        );
        assert_eq!(labels(&Axis::log("epsilon", vec![0.25, 1.0, 4.0]), &[1.0]), ["0.25", "1", "4"]);
    }

    #[test]
    fn every_list_of_values_has_an_axis() {
        for axis in [Axis::linear("a"), Axis::percent("b"), Axis::log("c", vec![])] {
            for values in [
                &[][..],
                &[f64::NAN],
                &[0.0],
                &[-1.0, 1e300],
                &[0.5],
                &[1e-300, 2e-300],
                &[7.0, f64::INFINITY],
            ] {
                let ruler = Ruler::new(&axis, values.iter().copied(), 5).between(10.0, 90.0);
                assert!(ruler.ticks.len() < 110, "{values:?}");
                assert!(ruler.ticks.iter().all(|(tick, _)| ruler.at(*tick).is_finite()), "{values:?}");
            }
        }
    }

    #[test]
    fn places_follow_the_scale() {
        let ruler = Ruler::new(&Axis::log("e", vec![1.0, 100.0]).within(1.0, 100.0), [].into_iter(), 5)
            .between(0.0, 100.0);
        assert!((ruler.at(10.0) - 50.0).abs() < 1e-4);
        assert!(ruler.holds(100.0) && !ruler.holds(101.0) && !ruler.holds(-1.0));
        assert_eq!(
            [write(0.87312, Number::Percent), write(2.5, Number::Plain), plain(1e-7)],
            ["87.31 %", "2.5", "1e-7"]
        );
    }
}
