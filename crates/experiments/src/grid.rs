//! Settings made from other settings by name, so that a new setting can be varied as soon as it exists.

use serde_json::Value;

use super::suite::Cell;
use progap::settings::{Declaration, Draft, Level};
use progap::{Error, Result};

pub use progap::settings::Change;

/// The setting of that name, as far as it can be the same in all runs.
pub(super) fn setting(written: &str) -> Result<&'static Declaration> {
    match Declaration::find(written)? {
        seed if seed.name == "seed" => {
            Err(Error::unsuitable("there is no setting \"seed\" here: seeds follow from the number of runs"))
        }
        found => Ok(found),
    }
}

/// Settings with some of them changed by name.
///
/// # Errors
/// A name that is not a setting's, or a value that it cannot have.
pub fn changed(settings: &Draft, changes: &[Change]) -> Result<Draft> {
    let mut settings = settings.clone();
    for (written, value) in changes {
        let setting = setting(written)?;
        setting.set(&mut settings, value.clone())?;
        settings.close(setting.name);
    }
    Ok(settings)
}

/// As [`changed`], but what decides nothing in such a run stays as it was: one run stands for all that are the same.
pub(super) fn changed_where_it_matters(usual: &Draft, changes: &[Change]) -> Result<Draft> {
    let mut settings = changed(usual, changes)?;
    for (written, _) in changes {
        let setting = setting(written)?;
        // A method that costs nothing is compared with others at each budget.
        let compared = setting.about.budget && usual.level != Level::None;
        if !compared && settings.without_effect(setting.name).is_some() {
            setting.set(&mut settings, setting.get(usual))?;
        }
    }
    Ok(settings)
}

/// Refuses a change that decides nothing in any run.
pub(super) fn refuse_changes_in_vain(changes: &[Change], cells: &[Cell]) -> Result<()> {
    for (written, _) in changes {
        let setting = setting(written)?;
        let runs = || cells.iter().flat_map(|cell| &cell.candidates);
        let why = |settings: &Draft| settings.without_effect(setting.name);
        if let Some(why) = runs().next().and_then(why).filter(|_| runs().all(|run| why(run).is_some())) {
            return Err(Error::no_effect(setting.name, why));
        }
    }
    Ok(())
}

/// Every choice of one value for each setting; the last setting varies fastest.
pub(super) fn combinations(axes: &[(String, Vec<Value>)]) -> Vec<Vec<Change>> {
    axes.iter().fold(vec![vec![]], |so_far, (name, values)| {
        let with = |before: &Vec<Change>, value: &Value| {
            let mut all = before.clone();
            all.push((name.clone(), value.clone()));
            all
        };
        so_far.iter().flat_map(|before| values.iter().map(move |value| with(before, value))).collect()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use progap::{Level, Settings};

    #[test]
    fn settings_are_changed_by_name() {
        let base = Settings::of(progap::MethodKind::ProgapLabels, Level::Edge).into();
        let change = |name: &str, value: Value| changed(&base, &[(name.into(), value)]);
        assert_eq!(change("learning-rate", json!(0.5)).expect("changed").learning_rate, 0.5);
        assert_eq!(change("epsilon", json!(3)).expect("changed").epsilon, Some(3.0));
        let said = |outcome: Result<Draft>| outcome.expect_err("refused").to_string();
        assert!(said(change("learnig_rate", json!(1))).contains("no setting \"learnig_rate\"; there are "));
        assert!(
            said(change("depth", json!("deep")))
                .contains("depth cannot be \"deep\": give a whole number from 0 to 50")
        );
        assert!(said(change("seed", json!(1))).contains("seeds follow"));
    }

    #[test]
    fn a_grid_has_every_combination_once() {
        let axes =
            [("depth".to_string(), vec![json!(1), json!(2)]), ("layers".into(), vec![json!(1), json!(2)])];
        let all = combinations(&axes);
        assert_eq!(all.len(), 4);
        assert_eq!(all[1], [("depth".to_string(), json!(1)), ("layers".into(), json!(2))]);
        assert_eq!(combinations(&[]), [vec![]]);
        assert!(combinations(&[("depth".into(), vec![])]).is_empty());
    }
}
