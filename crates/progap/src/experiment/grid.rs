//! Settings made from other settings by name, so that a new setting can be varied as soon as it exists.

use serde_json::Value;

use crate::settings::Settings;
use crate::{Error, Result};

/// A setting and its new value.
pub type Change = (String, Value);

/// The names of all settings that can be varied.
pub fn known_settings() -> Vec<String> {
    let settings = Settings::new(crate::Level::Edge);
    let names = serde_json::to_value(settings).ok().and_then(|value| Some(value.as_object()?.clone()));
    names.unwrap_or_default().into_iter().map(|(name, _)| name).filter(|name| name != "seed").collect()
}

/// The name of a setting as it is written in files, from how a user wrote it.
pub(super) fn setting_name(written: &str) -> Result<String> {
    let name = written.trim().replace('-', "_");
    let known = known_settings();
    if known.contains(&name) {
        return Ok(name);
    }
    let why = if name == "seed" { " (seeds follow from the number of runs)" } else { "" };
    Err(Error::Unsuitable(format!("there is no setting {written:?}{why}; there are {}", known.join(", "))))
}

/// Settings with some of them changed by name.
///
/// # Errors
/// A name that is not a setting's, or a value that it cannot have.
pub fn changed(settings: &Settings, changes: &[Change]) -> Result<Settings> {
    let mut settings = settings.clone();
    for (written, value) in changes {
        let name = setting_name(written)?;
        let mut all = serde_json::to_value(&settings)
            .map_err(|e| Error::Unsuitable(format!("the settings cannot be written: {e}")))?;
        all[&name] = value.clone();
        settings = serde_json::from_value(all)
            .map_err(|e| Error::Unsuitable(format!("the setting {written} cannot be {value}: {e}")))?;
    }
    Ok(settings)
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
    use crate::Level;

    #[test]
    fn settings_are_changed_by_name() {
        let base = Settings::new(Level::Edge);
        let change = |name: &str, value: Value| changed(&base, &[(name.into(), value)]);
        assert_eq!(change("learning-rate", json!(0.5)).expect("changed").learning_rate, 0.5);
        assert_eq!(change("epsilon", json!(3)).expect("changed").epsilon, Some(3.0));
        let said = |outcome: Result<Settings>| outcome.expect_err("refused").to_string();
        assert!(said(change("learnig_rate", json!(1))).contains("no setting \"learnig_rate\"; there are "));
        assert!(said(change("depth", json!("deep"))).contains("depth cannot be \"deep\""));
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
