//! Which settings decide anything: a setting that a run ignores is refused where somebody asked for it by name.

use std::borrow::Cow;

use super::declaration::{Declaration, Scope};
use super::{Level, Method, Settings};
use crate::method::catalogue;

impl Settings {
    /// Why a setting, by its name in config.toml, decides nothing in a run with these settings; `None` where it does.
    ///
    /// ```
    /// use progap::settings::{Level, Settings};
    ///
    /// let why = Settings::new(Level::Edge).without_effect("clip").unwrap();
    /// assert_eq!(why, "it belongs to `level node`");
    /// assert_eq!(Settings::new(Level::Node).without_effect("clip"), None);
    /// ```
    pub fn without_effect(&self, name: &str) -> Option<Cow<'static, str>> {
        let declaration = Declaration::find(name).ok()?;
        if let Some(owner) = owner(self.method, declaration.name) {
            return Some(format!("it belongs to `method {owner}`").into());
        }
        if self.method.recipe().ignored_settings().contains(&declaration.name) {
            return Some(format!("`method {}` is fitted without it", self.method).into());
        }
        let why = out_of_scope(self, declaration.scope)
            .or_else(|| declaration.about.needs.iter().find_map(|need| need(self)));
        why.map(Cow::Borrowed)
    }
}

/// Why a setting of some levels decides nothing at this one.
fn out_of_scope(settings: &Settings, scope: Scope) -> Option<&'static str> {
    // Another level comes with its own method where none is asked for.
    let node_level = catalogue::entry(settings.method).levels.contains(&Level::Node)
        || settings.method == catalogue::default_method(settings.level);
    match (scope, settings.level) {
        (Scope::Everywhere, _) | (Scope::Edge, Level::Edge) | (Scope::Node, Level::Node) => None,
        (Scope::Private, Level::Edge | Level::Node) => None,
        (Scope::Private, Level::None) => Some("at `level none` nothing is accounted for"),
        (Scope::Edge, _) => Some("it belongs to `level edge`"),
        (Scope::Node, _) if node_level => Some("it belongs to `level node`"),
        (Scope::Node, _) => Some("it belongs to `level node`, which this method does not have"),
    }
}

/// The method whose own setting it is, if it is not that of this one.
fn owner(method: Method, name: &str) -> Option<Method> {
    let owns = |method: &Method| method.recipe().own_settings().contains(&name);
    Method::ALL.iter().copied().find(owns).filter(|_| !owns(&method))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method;

    /// Whatever value such a setting has, the same is asked with the same noise.
    #[test]
    fn what_is_without_effect_on_noise_leaves_the_plan_as_it_is() {
        use crate::plan::{Plan, PublicSizes};
        use crate::settings::{Accounting, Bounding};
        let sizes = PublicSizes::EXAMPLE;
        type Change = fn(Settings) -> Settings;
        let changes: [(&str, Change); 6] = [
            ("clip", |s| Settings { clip: 0.5, ..s }),
            ("batch_size", |s| Settings { batch_size: 100, ..s }),
            ("bounding", |s| Settings { bounding: Bounding::Cap, ..s }),
            ("max_degree", |s| Settings { max_degree: 7, ..s }),
            ("gradient_noise_ratio", |s| Settings { gradient_noise_ratio: 3.0, ..s }),
            ("accounting", |s| Settings { accounting: Accounting::Rdp, ..s }),
        ];
        for entry in catalogue::methods() {
            for &level in entry.levels {
                let usual = Settings { epochs: 2, batch_size: 200, ..Settings::of(entry.method, level) };
                let plan = Plan::new(&usual.checked().expect("settings"), sizes).expect("a plan");
                for (name, change) in changes {
                    let other = change(usual.clone()).checked().and_then(|other| Plan::new(&other, sizes));
                    let Ok(other) = other else { continue };
                    if usual.without_effect(name).is_none() {
                        continue;
                    }
                    let asks = |plan: &Plan| {
                        let aggregates = f64::from(u8::from(method::aggregations(&usual) > 0));
                        [aggregates * plan.aggregate_multiplier * plan.sensitivity, plan.gradient_multiplier]
                    };
                    // A search for noise stops within a millionth.
                    let close = |(a, b): (f64, f64)| (a - b).abs() <= 2e-6 * a;
                    assert!(
                        asks(&plan).into_iter().zip(asks(&other)).all(close),
                        "{} {level} {name}",
                        entry.method
                    );
                    assert_eq!((other.steps, other.unit, other.delta), (plan.steps, plan.unit, plan.delta));
                }
            }
        }
    }

    #[test]
    fn a_setting_of_another_method_or_level_is_named() {
        let says = |settings: &Settings, name: &str, part: &str| {
            let why = settings.without_effect(name).unwrap_or("it has an effect".into());
            assert!(why.contains(part), "{name}: {why}");
        };
        let progap = Settings::of(Method::Progap, Level::Edge);
        says(&progap, "encoder_layers", "`method gap`");
        says(&Settings::of(Method::Gap, Level::Edge), "messages", "`method progap`");
        says(&Settings::of(Method::Mlp, Level::Node), "max_degree", "no edge");
        says(&Settings::of(Method::DpGnn, Level::Node), "gradient_noise_ratio", "no noisy aggregation");
        says(&Settings::of(Method::EdgeRand, Level::Edge), "clip", "does not have");
        says(&Settings::of(Method::EdgeRand, Level::Edge), "accounting", "delta of zero");
        says(&Settings::of(Method::Mlp, Level::Edge), "epsilon", "costs nothing");
        for name in
            ["depth", "hidden", "epochs", "learning_rate", "messages", "accounting", "epsilon", "delta"]
        {
            assert_eq!(progap.without_effect(name), None, "{name}");
        }
    }
}
