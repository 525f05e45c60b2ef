//! Which settings decide anything: a setting that a run ignores is refused where somebody asked for it by name.

use std::borrow::Cow;

use crate::method::{self, catalogue};
use crate::settings::{Level, Method, Settings};

/// Why a setting, by its name in config.toml, decides nothing in a run with these settings; `None` where it does.
///
/// ```
/// use progap::effect::without_effect;
/// use progap::{Level, Settings};
///
/// let why = without_effect(&Settings::new(Level::Edge), "clip").unwrap();
/// assert_eq!(why, "it belongs to --level node");
/// assert_eq!(without_effect(&Settings::new(Level::Node), "clip"), None);
/// ```
pub fn without_effect(settings: &Settings, name: &str) -> Option<Cow<'static, str>> {
    match owner(settings.method, name) {
        Some(owner) => Some(format!("it belongs to --method {owner}").into()),
        None => of_no_use(settings, name).map(Cow::Borrowed),
    }
}

/// As [`without_effect`], for settings that the method has.
fn of_no_use(settings: &Settings, name: &str) -> Option<&'static str> {
    const NODE: Option<&str> = Some("it belongs to --level node");
    let method = settings.method;
    let node = settings.level == Level::Node;
    let no_node_level = !catalogue::entry(method).levels.contains(&Level::Node);
    let aggregates = method::aggregations(settings) > 0;
    match name {
        "clip" | "batch_size" | "bounding" | "max_degree" | "gradient_noise_ratio" if !node => {
            if no_node_level {
                Some("it belongs to --level node, which this method does not have")
            } else {
                NODE
            }
        }
        "bounding" | "max_degree" if !method.recipe().reads_senders() && !aggregates => {
            Some("it bounds what a node sends, and this run uses no edge")
        }
        "gradient_noise_ratio" if !aggregates => {
            Some("it divides noise between aggregations and gradients, and this run has no noisy aggregation")
        }
        "messages" | "layerwise" if settings.depth == 0 => Some("it needs a --depth of at least 1"),
        "accounting" if settings.level == Level::None => Some("at --level none nothing is accounted for"),
        "accounting" if method.recipe().is_pure() => {
            Some("this method has a delta of zero, for which there is one way to account")
        }
        "accounting" | "epsilon" | "delta" if settings.level == Level::Edge && !settings.touches_edges() => {
            Some("this run uses no edge, so it costs nothing at --level edge")
        }
        _ => None,
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
    use crate::settings::Settings;

    /// Whatever value such a setting has, the same is asked with the same noise.
    #[test]
    fn what_is_without_effect_on_noise_leaves_the_plan_as_it_is() {
        use crate::plan::{Plan, PublicSizes};
        use crate::settings::{Accounting, Bounding};
        let sizes = PublicSizes { edges: 60_000, train_nodes: 2_000, nodes: 3_000, columns: 40, classes: 4 };
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
                let plan = Plan::new(&usual, sizes).expect("a plan");
                for (name, change) in changes {
                    let Ok(other) = Plan::new(&change(usual.clone()), sizes) else { continue };
                    if without_effect(&usual, name).is_none() {
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
            let why = without_effect(settings, name).unwrap_or("it has an effect".into());
            assert!(why.contains(part), "{name}: {why}");
        };
        let progap = Settings::new(Level::Edge);
        says(&progap, "encoder_layers", "--method gap");
        says(&Settings::of(Method::Gap, Level::Edge), "messages", "--method progap");
        says(&Settings::of(Method::Mlp, Level::Node), "max_degree", "no edge");
        says(&Settings::of(Method::DpGnn, Level::Node), "gradient_noise_ratio", "no noisy aggregation");
        says(&Settings::of(Method::EdgeRand, Level::Edge), "clip", "does not have");
        says(&Settings::of(Method::EdgeRand, Level::Edge), "accounting", "delta of zero");
        says(&Settings::of(Method::Mlp, Level::Edge), "epsilon", "costs nothing");
        for name in
            ["depth", "hidden", "epochs", "learning_rate", "messages", "accounting", "epsilon", "delta"]
        {
            assert_eq!(without_effect(&progap, name), None, "{name}");
        }
    }
}
