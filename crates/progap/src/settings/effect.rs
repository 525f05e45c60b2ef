//! Which settings decide anything: a setting that a run ignores is refused where somebody asked for it by name.

use std::borrow::Cow;

use super::declaration::{Declaration, Scope};
use super::{Level, MethodKind, Settings};
use crate::method::catalogue;

impl Settings {
    /// Why a setting, by its name in config.toml, decides nothing in a run with these settings; `None` where it does.
    ///
    /// ```
    /// use progap::settings::{Level, Settings};
    ///
    /// let why = Settings::new(Level::Edge).without_effect("clip").unwrap();
    /// assert_eq!(why, "it belongs to level node");
    /// assert_eq!(Settings::new(Level::Node).without_effect("clip"), None);
    /// ```
    pub fn without_effect(&self, name: &str) -> Option<Cow<'static, str>> {
        let declaration = Declaration::find(name).ok()?;
        let owners = owners(declaration.name);
        if !owners.is_empty() && !owners.contains(&self.method) {
            let names: Vec<String> = owners.iter().map(|owner| format!("the method {owner}")).collect();
            return Some(format!("it belongs to {}", names.join(" and ")).into());
        }
        if self.method.spec().ignored.contains(&declaration.name) {
            return Some(format!("the method {} is fitted without it", self.method).into());
        }
        let why = out_of_scope(self, declaration.scope)
            .or_else(|| declaration.about.needs.iter().find_map(|need| need(self)));
        why.map(Cow::Borrowed)
    }

    /// Why what is said about the edges of a graph decides nothing in a run with these settings; `None` where it does.
    pub fn edges_without_effect(&self) -> Option<&'static str> {
        let reads = self.touches_edges() || self.method.can().mixes_rows;
        (!reads).then_some("this run uses no edge")
    }

    /// Why a setting decides nothing of what a run with these settings asks and of the noise that it needs; `None`
    /// where it does.
    pub fn without_cost(&self, name: &str) -> Option<&'static str> {
        let declaration = Declaration::find(name).ok()?;
        (!(declaration.about.costs)(self)).then_some("neither queries nor their noise depend on it")
    }
}

/// Why a setting of some levels decides nothing at this one.
fn out_of_scope(settings: &Settings, scope: Scope) -> Option<&'static str> {
    let node_level = catalogue::entry(settings.method).levels.contains(&Level::Node);
    match (scope, settings.level) {
        (Scope::Everywhere, _) | (Scope::Edge, Level::Edge) | (Scope::Node, Level::Node) => None,
        (Scope::Private, Level::Edge | Level::Node) => None,
        (Scope::Private, Level::None) => Some("at level none nothing is accounted for"),
        (Scope::Edge, _) => Some("it belongs to level edge"),
        (Scope::Node, _) if node_level => Some("it belongs to level node"),
        (Scope::Node, _) => Some("it belongs to level node, which this method does not have"),
    }
}

/// The methods that alone have a setting; none where all have it.
fn owners(name: &str) -> Vec<MethodKind> {
    let owns = |method: &MethodKind| method.spec().own.contains(&name);
    MethodKind::ALL.iter().copied().filter(owns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method;

    /// Whatever value such a setting has, the same is asked with the same noise.
    #[test]
    fn what_is_without_effect_on_noise_leaves_the_plan_as_it_is() {
        use crate::plan::Plan;
        use crate::settings::{Accounting, Bounding};
        let sizes = crate::settings::PublicFacts::EXAMPLE;
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
    fn what_costs_nothing_is_told_from_what_does() {
        let costs = |method, level, name: &str| {
            let settings = Settings { epochs: 2, batch_size: 200, ..Settings::of(method, level) };
            settings.without_cost(name).is_none()
        };
        for name in ["hidden", "epochs", "learning_rate", "jk", "dropout", "layerwise"] {
            assert!(!costs(MethodKind::ProgapLabels, Level::Edge, name), "{name}");
        }
        for name in ["depth", "undirected", "epsilon", "accounting", "delta"] {
            assert!(costs(MethodKind::ProgapLabels, Level::Edge, name), "{name}");
        }
        // One way or the other costs the same; both are two queries.
        assert!(!costs(MethodKind::ProgapLabels, Level::Edge, "direction"));
        assert!(costs(MethodKind::ProgapViews, Level::Edge, "direction"));
        for name in [
            "depth",
            "epochs",
            "batch_size",
            "max_degree",
            "bounding",
            "gradient_noise_ratio",
            "class_weights",
        ] {
            assert!(costs(MethodKind::ProgapLabels, Level::Node, name), "{name}");
        }
        assert!(!costs(MethodKind::ProgapLabels, Level::Node, "hidden"));
    }

    #[test]
    fn a_setting_of_another_method_or_level_is_named() {
        let says = |settings: &Settings, name: &str, part: &str| {
            let why = settings.without_effect(name).unwrap_or("it has an effect".into());
            assert!(why.contains(part), "{name}: {why}");
        };
        let progap = Settings::of(MethodKind::ProgapLabels, Level::Edge);
        says(&progap, "encoder_layers", "the method gap");
        says(
            &Settings::of(MethodKind::Gap, Level::Edge),
            "messages",
            "the method progap-labels and the method progap-views",
        );
        says(&Settings::of(MethodKind::Mlp, Level::Node), "max_degree", "no edge");
        says(&Settings::of(MethodKind::DpGnn, Level::Node), "gradient_noise_ratio", "no noisy aggregation");
        says(&Settings::of(MethodKind::EdgeRand, Level::Edge), "clip", "does not have");
        says(&Settings::of(MethodKind::EdgeRand, Level::Edge), "accounting", "delta of zero");
        says(&Settings::of(MethodKind::Mlp, Level::Edge), "epsilon", "costs nothing");
        says(&Settings::of(MethodKind::Mlp, Level::Edge), "undirected", "uses no edge");
        says(&progap, "clip", "level node");
        let reads_no_edge = |method: &&MethodKind| {
            let level = catalogue::default_level(**method);
            Settings::of(**method, level).edges_without_effect().is_some()
        };
        assert_eq!(MethodKind::ALL.iter().filter(reads_no_edge).collect::<Vec<_>>(), [&MethodKind::Mlp]);
        for name in
            ["depth", "hidden", "epochs", "learning_rate", "messages", "accounting", "epsilon", "delta"]
        {
            assert_eq!(progap.without_effect(name), None, "{name}");
        }
    }
}
