//! Findings of an experiment, in sentences that are made of its figures: does the paper's claim hold here?

use progap::settings::{Level, MethodKind};
use progap_experiments::{self as experiment, MIN_RUNS, Name, Outcome, PRESET, mean, mean_interval};

type Pair<'o> = (&'o experiment::Cell, &'o Outcome);

/// The claims that the experiment can tell something about, and what it tells.
pub fn findings(name: Name, outcomes: &[(&experiment::Cell, Outcome)]) -> Vec<String> {
    let pairs: Vec<Pair<'_>> = outcomes.iter().map(|(cell, outcome)| (*cell, outcome)).collect();
    let claims = match name {
        Name::Table2 | Name::Tradeoff => vec![
            compare("The defaults are more accurate than the published settings", &pairs, |a, b| {
                let presets = (variant(a, PRESET), variant(b, PRESET));
                a.method == b.method && presets == (Some("default"), Some("paper"))
            }),
            compare("progap-views is more accurate than progap-labels", &pairs, |a, b| {
                let same = variant(a, PRESET) == variant(b, PRESET);
                (a.method, b.method) == (MethodKind::ProgapViews, MethodKind::ProgapLabels) && same
            }),
            compare("ProGAP is more accurate than GAP", &pairs, |a, b| {
                let same = variant(a, PRESET) == variant(b, PRESET);
                (a.method, b.method) == (MethodKind::Progap, MethodKind::Gap) && same
            }),
        ],
        Name::Layerwise => vec![compare(
            "Progressive training is at least as accurate as layerwise training",
            &pairs,
            |a, b| {
                let trainings = (variant(a, "training"), variant(b, "training"));
                let same = variant(a, "depth") == variant(b, "depth");
                trainings == (Some("progressive"), Some("layerwise")) && same
            },
        )],
        Name::Depth => vec![deeper(&pairs)],
        Name::Convergence | Name::Ablation | Name::Labels | Name::Custom => vec![],
    };
    claims.into_iter().flatten().collect()
}

fn variant<'c>(cell: &'c experiment::Cell, name: &str) -> Option<&'c str> {
    cell.variant.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Where two cells are compared: data set, level and budget.
fn place(cell: &experiment::Cell) -> String {
    let level = match cell.level {
        Level::None => "not private".to_string(),
        level => format!("{level} level"),
    };
    let budget = cell.epsilon.map_or(String::new(), |epsilon| format!(" at epsilon {epsilon}"));
    format!("{}, {level}{budget}", cell.data.name)
}

/// Cells against their rivals wherever both were run, split by split.
fn compare(
    claim: &str,
    pairs: &[Pair<'_>],
    is_rival: impl Fn(&experiment::Cell, &experiment::Cell) -> bool,
) -> Option<String> {
    let (mut better, mut clearly, mut judged, mut worse, mut all) = (0, 0, 0, Vec::new(), 0);
    for (cell, outcome) in pairs {
        let same = |other: &&Pair<'_>| {
            is_rival(cell, other.0)
                && other.0.data.name == cell.data.name
                && (other.0.level, other.0.epsilon) == (cell.level, cell.epsilon)
        };
        let Some((_, other)) = pairs.iter().find(same) else { continue };
        // The same splits, unless a run is missing.
        if outcome.values.is_empty() || outcome.values.len() != other.values.len() {
            continue;
        }
        let gains: Vec<f64> = outcome.values.iter().zip(&other.values).map(|(a, b)| a - b).collect();
        let (gain, interval) = (mean(&gains), mean_interval(&gains));
        all += 1;
        judged += usize::from(interval.is_some());
        if gain >= 0.0 {
            better += 1;
            clearly += usize::from(interval.is_some_and(|[low, _]| low > 0.0));
        } else {
            let within = interval.is_some_and(|[_, high]| high >= 0.0);
            let beyond = if within { ", within chance" } else { "" };
            worse.push(format!("{} ({:.1} points{beyond})", place(cell), 100.0 * gain));
        }
    }
    if all == 0 {
        return None;
    }
    let but = match worse.as_slice() {
        [] => String::new(),
        worse => format!(" Not so: {}.", worse.join("; ")),
    };
    let chance = match judged {
        0 => format!("; fewer than {MIN_RUNS} runs cannot tell this from chance"),
        _ => format!(
            ", in {clearly} of them beyond chance (the 95 % bootstrap interval of the difference, split by split)"
        ),
    };
    Some(format!("{claim}: so in {better} of {all} comparisons{chance}.{but}"))
}

/// Whether the best depth grows with the budget.
fn deeper(pairs: &[Pair<'_>]) -> Option<String> {
    let mut groups: Vec<(String, Level)> = Vec::new();
    for (cell, _) in pairs {
        let group = (cell.data.name.clone(), cell.level);
        if cell.epsilon.is_some() && !groups.contains(&group) {
            groups.push(group);
        }
    }
    let (mut holds, mut all, mut told) = (0, 0, Vec::new());
    for (data, level) in groups {
        let of_group = || pairs.iter().filter(|(c, _)| c.data.name == data && c.level == level);
        let mut budgets: Vec<f64> = of_group().filter_map(|(cell, _)| cell.epsilon).collect();
        budgets.sort_by(f64::total_cmp);
        budgets.dedup();
        let best = |epsilon: f64| {
            of_group()
                .filter(|(cell, _)| cell.epsilon == Some(epsilon))
                .filter_map(|(cell, outcome)| {
                    Some((variant(cell, "depth")?.parse::<usize>().ok()?, outcome.mean()?))
                })
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map(|(depth, _)| depth)
        };
        let depths: Vec<usize> = budgets.iter().filter_map(|&epsilon| best(epsilon)).collect();
        if depths.len() < 2 || depths.len() != budgets.len() {
            continue;
        }
        all += 1;
        holds += usize::from(depths.last() >= depths.first());
        let steps: Vec<String> =
            budgets.iter().zip(&depths).map(|(epsilon, depth)| format!("{depth} at {epsilon}")).collect();
        told.push(format!("{data}, {level} level: {}", steps.join(", ")));
    }
    (all > 0).then(|| {
        format!(
            "Deeper is better at larger epsilons: the best depth at the largest budget is at least that at the \
             smallest in \
             {holds} of {all} cases. Best depths: {}.",
            told.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(method: MethodKind, epsilon: f64, variant: &[(&str, &str)]) -> experiment::Cell {
        let data = experiment::DataSpec {
            name: "school".into(),
            content: serde_json::Value::Null,
            place: serde_json::Value::Null,
        };
        let variant = variant.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let (level, epsilon) = (Level::Edge, Some(epsilon));
        experiment::Cell { data, method, level, epsilon, variant, candidates: vec![] }
    }

    fn told(name: Name, cells: &[(experiment::Cell, Vec<f64>)]) -> Vec<String> {
        let outcome = |values: &Vec<f64>| Outcome { values: values.clone(), ..Outcome::default() };
        let outcomes: Vec<_> = cells.iter().map(|(cell, values)| (cell, outcome(values))).collect();
        findings(name, &outcomes)
    }

    #[test]
    fn claims_are_counted_and_contradictions_named() {
        let cells = [
            (cell(MethodKind::Progap, 1.0, &[]), vec![0.8, 0.7, 0.9, 0.8, 0.7]),
            (cell(MethodKind::Gap, 1.0, &[]), vec![0.7, 0.6, 0.8, 0.7, 0.6]),
            (cell(MethodKind::Progap, 2.0, &[]), vec![0.6, 0.9, 0.7, 0.7, 0.7]),
            (cell(MethodKind::Gap, 2.0, &[]), vec![0.8, 0.8, 0.75, 0.75, 0.75]),
            (cell(MethodKind::Progap, 4.0, &[]), vec![0.9]),
        ];
        let text = told(Name::Tradeoff, &cells).remove(0);
        assert!(text.contains("so in 1 of 2 comparisons, in 1 of them beyond chance"), "{text}");
        assert!(text.contains("school, edge level at epsilon 2 (-5.0 points, within chance)"), "{text}");
        assert!(told(Name::Ablation, &cells).is_empty());
        // Too few runs say nothing of chance.
        let few: Vec<_> = cells.iter().map(|(cell, values)| (cell.clone(), values[..1].to_vec())).collect();
        let text = told(Name::Tradeoff, &few).remove(0);
        assert!(text.contains("fewer than 5 runs cannot tell this from chance"), "{text}");
        assert!(!text.contains("beyond chance") && !text.contains("within chance"), "{text}");
    }

    #[test]
    fn presets_are_compared_method_by_method() {
        let preset = |method, name, values: &[f64]| (cell(method, 1.0, &[(PRESET, name)]), values.to_vec());
        let cells = [
            preset(MethodKind::Progap, "default", &[0.8, 0.9]),
            preset(MethodKind::Progap, "paper", &[0.7, 0.6]),
            preset(MethodKind::Gap, "default", &[0.6, 0.7]),
            preset(MethodKind::Gap, "paper", &[0.65, 0.75]),
        ];
        let [presets, methods] = told(Name::Tradeoff, &cells).try_into().expect("two claims");
        assert!(
            presets.starts_with("The defaults") && presets.contains("so in 1 of 2 comparisons"),
            "{presets}"
        );
        assert!(methods.contains("so in 1 of 2 comparisons") && methods.contains("-5.0 points"), "{methods}");
    }

    #[test]
    fn depths_are_compared_between_budgets() {
        let at = |epsilon, depth, value| {
            (cell(MethodKind::ProgapLabels, epsilon, &[("depth", depth)]), vec![value])
        };
        let cells = [at(1.0, "1", 0.7), at(1.0, "2", 0.6), at(4.0, "1", 0.7), at(4.0, "2", 0.8)];
        let text = told(Name::Depth, &cells).remove(0);
        assert!(text.contains("in 1 of 1 cases") && text.contains("1 at 1, 2 at 4"), "{text}");
    }
}
