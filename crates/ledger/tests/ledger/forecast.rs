//! When a budget ends.

use super::*;

/// As many runs are accepted as were foreseen, and not one more.
#[test]
fn as_many_runs_fit_as_were_foreseen() {
    let (_folder, _, mut ledger) = ledger(2.0);
    let nothing = ledger.forecast(NAME, Unit::Edge, 7).unwrap();
    assert!(nothing.runs == 0 && nothing.left_runs.is_none() && nothing.ends.is_none(), "{nothing:?}");
    ledger.charge(run("a", 11.0)).unwrap();
    ledger.charge(run("b", 14.0)).unwrap();
    let forecast = ledger.forecast(NAME, Unit::Edge, 7).unwrap();
    let (runs, left) = (forecast.runs, forecast.left_runs.unwrap());
    assert!(runs == 2 && left > 5, "{forecast:?}");
    // Two a week: the first that is refused comes after half as many weeks.
    let days = forecast.days_left.unwrap();
    assert!((days - 7.0 * (left / 2 + 1) as f64).abs() < 0.1, "{forecast:?}");
    assert!(forecast.ends.unwrap().ends_with('Z'));
    for more in 0..left {
        ledger.charge(run(format!("{more}"), if more % 2 == 0 { 11.0 } else { 14.0 })).unwrap();
    }
    refused(ledger.charge(run("one more", if left % 2 == 0 { 11.0 } else { 14.0 })));
    let now = ledger.forecast(NAME, Unit::Edge, 1).unwrap();
    assert!(now.left_runs == Some(0) && now.days_left.unwrap() <= 1.0, "{now:?}");
}

#[test]
fn budgets_that_last_and_accounts_that_are_not_there() {
    let (_folder, _, mut ledger) = ledger(20.0);
    ledger.charge(run("a", 1000.0)).unwrap();
    let forecast = ledger.forecast(NAME, Unit::Edge, 30).unwrap();
    assert!(forecast.runs == 1 && forecast.left_runs.is_none() && forecast.days_left.is_none());
    assert!(
        ledger.forecast(NAME, Unit::Node, 7).is_err() && ledger.forecast("nobody", Unit::Edge, 7).is_err()
    );
    assert!(ledger.forecast(NAME, Unit::Edge, 0).unwrap_err().to_string().contains("days"));
}
