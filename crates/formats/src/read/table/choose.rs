//! The kind of each column of a node table: by the user's choice, else by its values.

use twox_hash::XxHash3_64;

use super::category::{Categories, NONE, Sorted};
use super::date::{self, Dates};
use super::feature::{FeatureColumn, Finished, Reads};
use super::formatted_number::{is_formatted, is_number};
use super::matrix::Values;
use super::numbers::Numbers;
use super::unique;
use crate::read::columns::{Bound, ColumnChoice, ColumnKind, ColumnReport, DateOrder};
use crate::read::missing::{self, is_missing};
use crate::{Error, InferenceKind, NumberColumn, Place, Problem, Result};

/// A text column with more different values than this is cut to the most frequent ones, unless the user says otherwise.
const MAX_CATEGORIES: usize = 1000;
/// A column with fewer different values than this is no list of names.
const MIN_NAMES: usize = 20;
/// The columns that the words of a text are hashed to, unless the user says otherwise.
const TEXT_WIDTH: usize = 64;
/// More columns than this are not hashed to.
const MAX_TEXT_WIDTH: usize = 1 << 20;

/// A feature column, with what is known of it besides its cells.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) column: FeatureColumn,
    pub(super) choice: ColumnChoice,
    /// Whether its numbers are dates, in days, as the file itself says.
    pub(super) is_date: bool,
    /// Whether the user asks for it by name, whatever its values look like.
    pub(super) wanted: bool,
}

impl Feature {
    pub(super) fn new(choice: ColumnChoice, decimal_comma: bool) -> Self {
        let reads = match choice.kind {
            None if choice.categories.is_some() || choice.order.is_some() => Reads::Names,
            None if choice.bounds.as_ref().is_some_and(is_numbers) => Reads::Numbers { decimal_comma },
            None | Some(ColumnKind::Drop) => Reads::Anything { decimal_comma },
            Some(ColumnKind::Number) => Reads::Numbers { decimal_comma },
            Some(ColumnKind::Category | ColumnKind::Date | ColumnKind::Text) => Reads::Names,
        };
        Feature { column: FeatureColumn::new(reads), choice, is_date: false, wanted: false }
    }

    /// From now on the column is read as text, where the user leaves that open: its file says so.
    pub(super) fn expect_text(&mut self) {
        if self.column.is_open() {
            self.column = FeatureColumn::names();
        }
    }

    /// From now on cells are days.
    pub(super) fn expect_days(&mut self) {
        self.is_date = true;
        if matches!(self.choice.kind, None | Some(ColumnKind::Date)) {
            self.column = FeatureColumn::new(Reads::Numbers { decimal_comma: false });
        }
    }
}

/// A column that was read, and what there is to say about it; ids become no features. `read_again` reads it once more,
/// as names.
pub(super) fn choose(
    name: &str,
    feature: Feature,
    row: &dyn Fn(usize) -> u64,
    read_again: impl FnOnce() -> Result<Categories>,
) -> Result<(Option<Values>, ColumnReport)> {
    let Feature { column, choice, is_date, wanted } = feature;
    let cell =
        |at: usize, problem: Problem| problem.at(Place::Cell { row: row(at), column: name.to_string() });
    let in_column = |problem: Problem| problem.at(Place::Column(name.to_string()));
    let open = column.is_open();
    let may_be_ids = open && !is_date && !wanted && choice.max_categories.is_none();
    let some = |(values, report)| (Some(values), report);
    let mut declared = declared(&choice).map_err(in_column)?;
    let finished = column.finish().map_err(|(at, problem)| cell(at, problem))?;
    let mut names = match finished {
        Finished::Numbers { numbers, missing, ids: true, .. } if may_be_ids => {
            return Ok((None, left_out(name, numbers.rows() - missing.len(), missing.len())));
        }
        Finished::Numbers { numbers, missing, switch, .. } => {
            // The file itself says so: no order is needed to read it.
            declared.date = is_date.then_some(DateOrder::YearFirst);
            let kind = match (is_date, switch) {
                (true, _) => "date",
                (_, true) => "switch",
                _ => "number",
            };
            return as_numbers(name, kind, numbers, missing, declared, &cell).map(some);
        }
        Finished::Names(names) => names,
        Finished::ReadAgain => read_again()?,
    };
    let is_listed = |word: &str| choice.categories.iter().flatten().any(|listed| listed == word);
    let words = names.forget(|name| is_missing(name) && !is_listed(name));
    let (distinct, rows) = (names.distinct(), names.named());
    let may_be_date = match choice.kind {
        Some(ColumnKind::Date) => true,
        None => choice.categories.is_none() && (open || choice.bounds.is_some() || choice.order.is_some()),
        _ => false,
    };
    if may_be_date {
        let counts = names.counts();
        let said = choice.kind.is_some() || choice.order.is_some();
        let order = match (choice.order, date::recognise(counts.iter().map(|(name, times)| (*name, *times))))
        {
            (Some(order), _) | (None, Dates::In(order)) => Some(order),
            (None, Dates::Either) => {
                return Err(in_column(Problem::AmbiguousDate(names.example())));
            }
            (None, Dates::No) => said.then_some(DateOrder::YearFirst),
        };
        if let Some(order) = order {
            declared.date = Some(order);
            return as_dates(name, order, names.into_names(), declared, &cell).map(some);
        }
    }
    if open && choice.kind.is_none() && choice.max_categories.is_none() {
        refuse_dressed(&names).map_err(|(at, problem)| cell(at, problem))?;
    }
    if may_be_ids && choice.kind.is_none() && unique::are_ids(&names) {
        return Ok((None, left_out(name, rows, names.rows() - rows)));
    }
    let mut report = ColumnReport::new(name, "category");
    report.missing = names.rows() - rows;
    report.categories = Some(distinct);
    report.note = missing::note(&words);
    if choice.kind == Some(ColumnKind::Text) {
        let width = choice.width.unwrap_or(TEXT_WIDTH);
        if width == 0 || width > MAX_TEXT_WIDTH {
            let message = format!("words cannot be hashed to {width} columns, only to 1 to {MAX_TEXT_WIDTH}");
            return Err(in_column(Problem::Invalid(message)));
        }
        let Sorted { names, codes } = names.into_names();
        let groups = names.iter().map(|text| word_groups(text, width as u32)).collect();
        report.kind = "text";
        report.features = width;
        return Ok((Some(Values::Hashed { width: width as u32, groups, codes }), report));
    }
    if open && choice.max_categories.is_none() && distinct >= MIN_NAMES && 2 * distinct > rows {
        let example = names.example();
        let problem = Problem::NearlyUnique { values: distinct as u64, nodes: rows as u64, example };
        return Err(in_column(problem));
    }
    let sorted = names.sort();
    let sorted = match choice.categories {
        Some(listed) => {
            check_listed(&listed).map_err(in_column)?;
            sorted.with_names(listed).map_err(|(at, value)| cell(at, Problem::UnlistedCategory(value)))?
        }
        None => {
            let most = choice.max_categories.unwrap_or(if open { MAX_CATEGORIES } else { usize::MAX });
            report.read_off = Some(InferenceKind::Categories);
            if distinct > most {
                let cut = format!("the {most} most frequent values, the others are one category");
                report.read_off = Some(InferenceKind::MostFrequent);
                report.note = Some(report.note.map_or(cut.clone(), |note| format!("{cut}; {note}")));
            }
            sorted.at_most(most)
        }
    };
    report.features = sorted.names.len();
    Ok((Some(Values::Names(sorted)), report))
}

/// The report on a column of ids.
fn left_out(name: &str, values: usize, missing: usize) -> ColumnReport {
    ColumnReport {
        missing,
        categories: Some(values),
        read_off: Some(InferenceKind::Distinct),
        note: Some("left out: all values are different, as ids are".into()),
        ..ColumnReport::new(name, "not used")
    }
}

fn check_listed(listed: &[String]) -> std::result::Result<(), Problem> {
    let mut seen = std::collections::HashSet::new();
    match listed.iter().find(|name| !seen.insert(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Problem::Invalid(format!("the category {name:?} is declared twice"))),
    }
}

fn is_numbers(bounds: &[Bound; 2]) -> bool {
    bounds.iter().all(|bound| matches!(bound, Bound::Number(_)))
}

fn numbers_of(bounds: &[Bound; 2]) -> std::result::Result<[f64; 2], Problem> {
    let number = |bound: &Bound| match bound {
        Bound::Number(value) if value.is_finite() => Ok(*value),
        Bound::Number(value) => Err(Problem::NotFinite(*value)),
        Bound::Date(text) => date::days(text).ok_or_else(|| {
            Problem::Invalid(format!("the bound {text:?} is not a date such as 2024-02-29, and no number"))
        }),
    };
    let [low, high] = [number(&bounds[0])?, number(&bounds[1])?];
    if low < high {
        return Ok([low, high]);
    }
    let message = format!("the lower bound {low} is not below the upper bound {high}");
    Err(Problem::Invalid(message))
}

/// The declared scale of numbers; none where they are used as they are. The column's place is not known yet.
fn declared(choice: &ColumnChoice) -> std::result::Result<Declared, Problem> {
    let bounds = choice.bounds.as_ref().map(numbers_of).transpose()?;
    if choice.log == Some(true) && bounds.is_none_or(|[low, _]| low <= 0.0) {
        let problem = match bounds {
            None => "logarithms are taken of declared bounds, and there are none: declare two above 0".into(),
            Some([low, _]) => {
                format!(
                    "a logarithm needs a lower bound above 0, and it is {low}: declare another, or no logarithm"
                )
            }
        };
        return Err(Problem::Invalid(problem));
    }
    let scale = NumberColumn { bounds, log: choice.log, ..NumberColumn::new(0) };
    let scale = (choice.scale != Some(false)).then_some(scale);
    Ok(Declared { bounds, missing: choice.missing, scale, date: None })
}

struct Declared {
    bounds: Option<[f64; 2]>,
    missing: Option<bool>,
    scale: Option<NumberColumn>,
    /// How dates are written, where the numbers are dates.
    date: Option<DateOrder>,
}

fn as_numbers(
    name: &str,
    kind: &'static str,
    numbers: Numbers,
    missing: Vec<u32>,
    Declared { bounds, missing: may_be_missing, scale, date }: Declared,
    cell: &dyn Fn(usize, Problem) -> Error,
) -> Result<(Values, ColumnReport)> {
    if let (Some(false), Some(&row)) = (may_be_missing, missing.first()) {
        return Err(cell(row as usize, Problem::EmptyCell));
    }
    let mut report = ColumnReport::new(name, kind);
    report.missing = missing.len();
    let known = numbers.rows() - missing.len();
    let (mut low, mut high, mut nonzeros, mut beyond) = (f32::INFINITY, f32::NEG_INFINITY, 0, 0usize);
    // A column of 0 and 1 only stays as it is, whichever map would be used; declared bounds are taken at their word.
    let mut needs_scale = bounds.is_some();
    let is_beyond =
        |value: f64| bounds.is_some_and(|[smallest, largest]| value < smallest || value > largest);
    for (_, value) in numbers.nonzeros() {
        (low, high) = (low.min(value), high.max(value));
        nonzeros += 1;
        needs_scale |= value != 1.0;
        beyond += usize::from(is_beyond(f64::from(value)));
    }
    if nonzeros < known {
        (low, high) = (low.min(0.0), high.max(0.0));
        beyond += if is_beyond(0.0) { known - nonzeros } else { 0 };
    }
    report.range = (known > 0).then(|| [f64::from(low), f64::from(high)]);
    if beyond > 0 {
        report.note = Some(format!("{beyond} values lie beyond the declared bounds and are brought to them"));
    }
    let mut scale = match scale {
        Some(scale) => Some(NumberColumn { date, ..scale }).filter(|_| needs_scale || date.is_some()),
        None => NumberColumn { date, ..NumberColumn::new(0) }.left_alone(),
    };
    let mut numbers = numbers;
    if let Some(scale) = scale.as_mut().filter(|scale| scale.map.is_none()) {
        (numbers, scale.origin) = numbers.around_origin()?;
    }
    report.read_off = may_be_missing.is_none().then_some(InferenceKind::Missing);
    let missing = may_be_missing.unwrap_or(!missing.is_empty()).then_some(missing);
    let values = Values::Numbers { numbers, missing, scale };
    report.features = values.features();
    Ok((values, report))
}

/// Refuses a column of which most values are numbers with signs, by the first of them.
fn refuse_dressed(names: &Categories) -> std::result::Result<(), (usize, Problem)> {
    let counts = names.counts();
    let is_one = |name: &str| is_formatted(name) || is_number(name);
    let numbers: usize = counts.iter().filter(|(name, _)| is_one(name)).map(|(_, times)| times).sum();
    match names.first(is_formatted) {
        Some((at, text)) if 2 * numbers > names.named() => Err((at, Problem::DressedNumber(text))),
        _ => Ok(()),
    }
}

fn as_dates(
    name: &str,
    order: DateOrder,
    Sorted { names, codes }: Sorted,
    declared: Declared,
    cell: &dyn Fn(usize, Problem) -> Error,
) -> Result<(Values, ColumnReport)> {
    let days: Vec<Option<f64>> = names.iter().map(|name| date::days_in(name, order)).collect();
    let (mut numbers, mut missing) = (Numbers::default(), vec![]);
    for (at, &code) in codes.iter().enumerate() {
        let pushed = match (code, days.get(code as usize).copied().flatten()) {
            (NONE, _) => {
                missing.push(at as u32);
                numbers.push_missing()
            }
            (_, Some(days)) => numbers.push(days as f32, || days),
            (code, None) => Err(Problem::NotADate(names[code as usize].clone())),
        };
        pushed.map_err(|problem| cell(at, problem))?;
    }
    as_numbers(name, "date", numbers, missing, declared, cell)
}

/// The groups of the words of a text: words are what stands between anything but letters and digits, in small letters,
/// and a word's group is its hash.
///
/// Of one text by itself: no list of words is made of all rows.
pub(super) fn word_groups(text: &str, width: u32) -> Vec<u32> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let group = |word: &str| (XxHash3_64::oneshot(word.to_lowercase().as_bytes()) % u64::from(width)) as u32;
    let mut groups: Vec<u32> = words.map(group).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_group_in_any_order_and_case() {
        let groups = word_groups("Red car, blue car!", 1 << 20);
        assert_eq!(groups, word_groups("CAR blue red", 1 << 20));
        assert_eq!(groups.len(), 3);
        assert!(word_groups("... --", 8).is_empty());
        assert_eq!(word_groups("a b c d e f g h i j", 1), [0]);
    }
}
