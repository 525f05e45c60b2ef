//! When a budget ends, if runs go on as they did lately.

use progap_privacy::{Event, Unit};
use rusqlite::Connection;
use serde::Serialize;

use super::book::Book;
use super::compose;
use super::entry::Charged;
use super::error::{Error, Result};
use super::{Ledger, fits};

const DAY: i64 = 86_400;
/// Nobody plans further ahead, and dates have four digits.
const FARTHEST: i64 = 100 * 365 * DAY;

/// When a budget ends, if the runs of some days are repeated every so many days.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// The data set.
    pub name: String,
    /// The unit that the budget protects.
    pub unit: Unit,
    /// The days that are repeated, up to now.
    pub days: u32,
    /// How many runs they had. Questions about new nodes are not among them: they are taken to be about other nodes
    /// each time, and then add nothing.
    pub runs: usize,
    /// How many such runs the budget still pays for; `None` if it lasts for a hundred years.
    pub left_runs: Option<u64>,
    /// When the first of them will be refused.
    pub ends: Option<String>,
    /// In how many days that is.
    pub days_left: Option<f64>,
}

impl Ledger {
    /// When the budget of a data set for a unit ends, if the runs of the last `days` days are repeated every `days`
    /// days, with the costs of composition as they are charged.
    ///
    /// # Errors
    /// A ledger that cannot be read, or an account that it does not have; not a single day.
    pub fn forecast(&self, name: &str, unit: Unit, days: u32) -> Result<Forecast> {
        if !(1..=3650).contains(&days) {
            return Err(Error::invalid("the number of days", days, "1 to 3650"));
        }
        let (book, _) = self.read_all()?;
        let period = i64::from(days) * DAY;
        let now = self.time("now")?;
        let mut lately = Vec::new();
        for run in book.runs_of(name).filter(|run| run.later.is_none()) {
            let at = self.time(&run.receipt.time)?;
            // Clocks of machines differ: a run of the near future is one of now.
            if let Some(event) = run.event_in(unit).filter(|_| at > now - period) {
                lately.push((at.min(now), run, event));
            }
        }
        lately.sort_by_key(|(at, ..)| *at);
        let (name, runs) = (name.to_owned(), lately.len());
        let left =
            Repeated { book: &book, lately: &lately, unit }.left(&self.path, &name, FARTHEST / period)?;
        let Some(left) = left else {
            return Ok(Forecast { name, unit, days, runs, left_runs: None, ends: None, days_left: None });
        };
        let (periods, place) = (left / runs as u64, (left % runs as u64) as usize);
        let ends = lately[place].0 + (periods as i64 + 1) * period;
        let days_left = Some((ends - now) as f64 / DAY as f64);
        let ends = Some(text(&self.connection, ends).map_err(|error| self.say(error))?);
        Ok(Forecast { name, unit, days, runs, left_runs: Some(left), ends, days_left })
    }

    /// Seconds since 1970.
    fn time(&self, of: &str) -> Result<i64> {
        let read = self.connection.query_row("SELECT unixepoch(?1)", [of], |row| row.get(0));
        read.map_err(|error| self.say(error))
    }
}

fn text(connection: &Connection, seconds: i64) -> rusqlite::Result<String> {
    let query = "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?1, 'unixepoch')";
    connection.query_row(query, [seconds], |row| row.get(0))
}

/// The runs of a period, over and over.
struct Repeated<'b> {
    book: &'b Book,
    lately: &'b [(i64, &'b Charged, &'b Event)],
    unit: Unit,
}

impl Repeated<'_> {
    /// How many runs fit before the first that does not; `None` if so many periods do.
    fn left(&self, path: &std::path::Path, name: &str, most_periods: i64) -> Result<Option<u64>> {
        let account = self.book.account(path, name, self.unit)?;
        let spent: Vec<Event> =
            self.book.events(name, self.unit)?.into_iter().map(std::borrow::Cow::into_owned).collect();
        let runs = self.lately.len() as u64;
        let fit = |more: u64| -> Result<bool> {
            let (periods, place) = (more / runs, (more % runs) as usize);
            let (mut events, mut values) = (spent.clone(), 0u64);
            for (at, (_, run, event)) in self.lately.iter().enumerate() {
                let times = periods + u64::from(at < place);
                if times > 0 {
                    events.push((*event).clone().repeated(times)?);
                    values = values.saturating_add(run.noise_values.saturating_mul(times));
                }
            }
            let total = compose::epsilon(&events, account.delta)?.0;
            let tables = self.book.tables_fit(name, values, account.epsilon, account.delta);
            Ok(fits(total, account.epsilon) && tables.is_ok())
        };
        let most = runs.saturating_mul(most_periods.unsigned_abs());
        if runs == 0 || fit(most)? {
            return Ok(None);
        }
        // What is spent fits, and more runs cost more.
        let (mut low, mut high) = (0, most);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fit(middle)? { low = middle } else { high = middle }
        }
        Ok(Some(low))
    }
}
