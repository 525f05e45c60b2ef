//! Maps that whole columns give: mean 0 and deviation 1, after a logarithm where a column is skewed.

use rayon::prelude::*;

use crate::scale::{Curve, Map, NumberColumn};
use crate::{Features, Result, room};

/// A column with more zeros than this share keeps them: what is sparse stays sparse.
const MOSTLY_ZERO: f64 = 0.8;
/// A column as skewed as this is straightened. An exponential one has 2, a normal one 0.
const SKEWED: f64 = 2.0;

/// The values of a column that are not missing, in all rows or in some, as they lie in the matrix.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Those that are not 0, in the order of the rows.
    pub values: Vec<f64>,
    /// How many are 0.
    pub zeros: usize,
}

impl Known {
    /// Statistics of each number column over some rows; nothing of those that were mapped before, or are not asked for.
    ///
    /// # Errors
    /// More values than fit into memory.
    pub fn of(
        features: &Features,
        rows: usize,
        numbers: &[NumberColumn],
        is_asked_for: impl Fn(u32) -> bool,
    ) -> Result<Vec<Option<Known>>> {
        let mut place = vec![usize::MAX; features.columns()];
        let mut known: Vec<Option<Known>> = Vec::with_capacity(numbers.len());
        for (at, number) in numbers.iter().enumerate() {
            let is_asked_for = number.map.is_none() && is_asked_for(number.column);
            known.push(is_asked_for.then_some(Known { values: vec![], zeros: rows }));
            if is_asked_for {
                place[number.column as usize] = at;
            }
        }
        let mut stored: Vec<(usize, f32)> = vec![];
        for row in 0..rows {
            stored.clear();
            stored.extend(features.row(row).filter(|(_, value)| *value != 0.0));
            for &(column, value) in &stored {
                if let Some(Some(known)) = known.get_mut(place[column]) {
                    known.zeros -= 1;
                    room::push(&mut known.values, f64::from(value))?;
                }
            }
            for (number, known) in
                numbers.iter().zip(&mut known).filter(|(number, _)| number.missing.is_some())
            {
                let is_there = |column: u32| stored.binary_search_by_key(&(column as usize), |s| s.0).is_ok();
                if let (Some(known), true) = (known, number.missing.is_some_and(is_there)) {
                    // A missing value is stored as 0.
                    known.zeros = known.zeros.saturating_sub(1);
                }
            }
        }
        Ok(known)
    }

    /// The map that gives the column mean 0 and deviation 1.
    ///
    /// # Errors
    /// More values than fit into memory.
    pub fn map(self, number: &NumberColumn) -> Result<Map> {
        let Known { mut values, zeros } = self;
        let (bounds, mut zero) = (number.bounds, number.origin.unwrap_or(0.0));
        values.iter_mut().for_each(|value| *value += zero);
        let bring_within = |value: &mut f64| {
            if let Some([low, high]) = bounds {
                *value = value.clamp(low, high);
            }
        };
        values.iter_mut().for_each(bring_within);
        let scaled = |curve, mean, deviation| Map::Standard { curve, mean, deviation, bounds };
        let sparse = zero == 0.0 && zeros as f64 > MOSTLY_ZERO * (zeros + values.len()) as f64;
        if sparse && bounds.is_none_or(|[low, high]| low <= 0.0 && high >= 0.0) {
            // Only the others have a say in the unit: they become about 1, and the zeros stay.
            let square = values.iter().map(|value| value * value).sum::<f64>() / values.len().max(1) as f64;
            return Ok(scaled(Curve::Straight, 0.0, if square > 0.0 { square.sqrt() } else { 1.0 }));
        }
        bring_within(&mut zero);
        room::grow(&mut values, zeros)?;
        values.resize(values.len() + zeros, zero);
        let first = values.first().copied().unwrap_or(0.0);
        if values.iter().all(|&value| value == first) {
            return Ok(scaled(Curve::Straight, first, 1.0));
        }
        let straight = Moments::of(values.iter().copied());
        let mut curves = vec![];
        if straight.skewness.abs() > SKEWED {
            values.sort_unstable_by(f64::total_cmp);
            let quantile = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
            curves.extend((values[0] > 0.0).then(|| Curve::Log { floor: values[0] }));
            let unit = (quantile(0.75) - quantile(0.25)) / 2.0;
            curves.extend((unit > 0.0).then(|| Curve::Asinh { centre: quantile(0.5), unit }));
        }
        let straightened = curves.into_iter().map(|curve| {
            let moments = Moments::of(values.iter().map(|&value| curve.apply(value)));
            (curve, moments)
        });
        let (curve, Moments { mean, deviation, .. }) = straightened
            .filter(|(_, moments)| {
                moments.skewness.abs() < straight.skewness.abs() && moments.deviation > 0.0
            })
            .min_by(|(_, a), (_, b)| a.skewness.abs().total_cmp(&b.skewness.abs()))
            .unwrap_or((Curve::Straight, straight));
        Ok(scaled(curve, mean, if deviation > 0.0 { deviation } else { 1.0 }))
    }
}

/// The map of each column, from all rows; none for one that was mapped before, or that is a switch: 0 and 1 only.
pub(crate) fn maps(features: &Features, rows: usize, numbers: &[NumberColumn]) -> Result<Vec<Option<Map>>> {
    let real = crate::scale::real_columns(features, numbers);
    let known = Known::of(features, rows, numbers, |column| real.binary_search(&column).is_ok())?;
    let map =
        |(number, known): (&NumberColumn, Option<Known>)| known.map(|known| known.map(number)).transpose();
    numbers.par_iter().zip(known).map(map).collect()
}

struct Moments {
    mean: f64,
    deviation: f64,
    skewness: f64,
}

impl Moments {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Moments {
        let count = values.clone().count().max(1) as f64;
        let mean = values.clone().sum::<f64>() / count;
        let square = values.clone().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let deviation = square.sqrt();
        let cube = values.map(|value| ((value - mean) / deviation).powi(3)).sum::<f64>() / count;
        Moments { mean, deviation, skewness: if deviation > 0.0 { cube } else { 0.0 } }
    }
}
