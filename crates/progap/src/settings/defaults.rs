//! The default of a setting in one line, for every method and level at once.

use serde_json::Value;

use super::declaration::Declaration;
use super::{Level, MethodKind};
use crate::method::catalogue::{RECOMMENDED, default_level};

/// A method at a level, and what a setting is there.
type Default = (MethodKind, Level, String);

impl Declaration {
    /// The defaults in one line, such as "100; 10 at level node; 20 for dp-gnn": what most runs have, and where it is
    /// another.
    ///
    /// ```
    /// use progap::settings::Declaration;
    ///
    /// assert_eq!(Declaration::find("epochs")?.defaults(), "100; 10 at level node; 20 for dp-gnn");
    /// assert_eq!(Declaration::find("clip")?.defaults(), "1");
    /// # Ok::<(), progap::Error>(())
    /// ```
    pub fn defaults(&self) -> String {
        if self.name == "method" {
            return RECOMMENDED.to_string();
        }
        let all: Vec<Default> = match self.name {
            "level" => {
                let usual = |&method| (method, default_level(method), default_level(method).to_string());
                MethodKind::ALL.iter().map(usual).collect()
            }
            _ => MethodKind::ALL
                .iter()
                .flat_map(|&method| Level::ALL.iter().map(move |&level| (method, level)))
                .filter_map(|(method, level)| Some((method, level, shown(&self.default(method, level)?))))
                .collect(),
        };
        // The first of the shortest: with what the default method has as the rule, where that is as short as any.
        let first = all.iter().find(|(_, level, _)| *level == Level::Edge).or(all.first());
        let mut rules: Vec<&String> = first.into_iter().map(|(_, _, value)| value).collect();
        rules.extend(all.iter().map(|(_, _, value)| value));
        rules.into_iter().map(|rule| described(rule, &all)).min_by_key(String::len).unwrap_or_default()
    }
}

/// A value as people write it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "auto".into(),
        Value::String(name) => name.clone(),
        Value::Bool(on) => if *on { "on" } else { "off" }.into(),
        other => other.as_f64().map_or_else(|| other.to_string(), |number| number.to_string()),
    }
}

/// A rule and its exceptions: by level where most methods agree, else by method.
fn described(rule: &str, all: &[Default]) -> String {
    let mut parts = vec![rule.to_string()];
    let mut by_level: Vec<(Level, &str)> = Vec::new();
    // Of a setting that one method has, the level says it all.
    let alone = all.iter().all(|cell| cell.0 == all[0].0);
    for &level in Level::ALL {
        let here: Vec<&str> = all.iter().filter(|cell| cell.1 == level).map(|cell| cell.2.as_str()).collect();
        let count = |value: &str| here.iter().filter(|other| **other == value).count();
        let most = here.iter().copied().rev().max_by_key(|value| count(value));
        let agreed = most.filter(|value| (here.len() > 1 || alone) && 2 * count(value) > here.len());
        let usual = agreed.filter(|value| *value != rule);
        parts.extend(usual.map(|value| format!("{value} at level {level}")));
        by_level.push((level, usual.unwrap_or(rule)));
    }
    let expected = |level: Level| by_level.iter().find(|(known, _)| *known == level).map_or(rule, |(_, v)| v);
    let mut exceptions: Vec<(String, Vec<String>)> = Vec::new();
    for &method in MethodKind::ALL {
        let own: Vec<&Default> = all.iter().filter(|cell| cell.0 == method).collect();
        let strange: Vec<&&Default> = own.iter().filter(|cell| cell.2 != expected(cell.1)).collect();
        let Some(first) = strange.first() else { continue };
        let same = own.iter().all(|cell| cell.2 == first.2);
        let mut add = |value: &str, who: String| match exceptions.iter_mut().find(|(known, _)| known == value)
        {
            Some((_, names)) => names.push(who),
            None => exceptions.push((value.into(), vec![who])),
        };
        if same {
            add(&first.2, method.to_string());
            continue;
        }
        let mut values: Vec<&str> = strange.iter().map(|cell| cell.2.as_str()).collect();
        values.dedup();
        for value in values {
            let levels = strange.iter().filter(|cell| cell.2 == value).map(|cell| cell.1.name());
            add(value, format!("{method} at level {}", levels.collect::<Vec<_>>().join(" and ")));
        }
    }
    parts.extend(exceptions.into_iter().map(|(value, who)| format!("{value} for {}", who.join(", "))));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    /// The line of defaults is what the methods have, setting by setting.
    #[test]
    fn the_line_says_what_the_registry_has() {
        let of = |name: &str| Declaration::find(name).expect("a setting").defaults();
        assert_eq!(of("method"), "progap-views");
        assert_eq!(of("level"), "edge; none for sage; node for dp-gnn");
        assert_eq!(of("epsilon"), "1; 8 at level node");
        assert_eq!(of("delta"), "auto");
        assert_eq!(of("messages"), "auto; labels at level node");
        assert_eq!(of("batch_size"), "512; 256 for progap, gap, mlp; 2048 for dp-gnn");
        assert_eq!(of("hidden"), "16; 8 for progap-views at level edge");
        assert_eq!(of("encoder_layers"), "2");
        assert_eq!(of("layerwise"), "off");
        // The defaults of the method and of the level say nothing of the others.
        for declaration in
            Settings::declarations().iter().filter(|setting| !["method", "level"].contains(&setting.name))
        {
            let line = declaration.defaults();
            for &method in MethodKind::ALL {
                for &level in Level::ALL {
                    let value = declaration.default(method, level).map(|value| shown(&value));
                    assert!(value.is_none_or(|value| line.contains(&value)), "{}: {line}", declaration.name);
                }
            }
        }
    }
}
