//! By which rule a release was chosen among the models that a run trained.

use serde::{Deserialize, Serialize};

use crate::settings::{Level, Selection, Settings};

/// How a release was chosen, as its statement says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelectionRule {
    /// Of each stage the first epoch that is best on the validation nodes.
    BestValidation,
    /// Of each stage the last epoch.
    LastEpoch,
    /// The stage with the lowest log loss on the validation nodes, or the best there by the metric that was asked for;
    /// it beats the features by one standard error at least. Few validation nodes are joined by training nodes, each
    /// judging what was learnt without it.
    StageByValidation,
    /// The same on a fifth of the training nodes, which taught nothing, as there are no validation nodes.
    StageByTraining,
}

impl SelectionRule {
    /// The rule of a run with these settings.
    pub fn of(settings: &Settings) -> SelectionRule {
        let selects_stages = settings.method.can().selects_stages && settings.level != Level::Node;
        match (selects_stages, settings.selection) {
            (false, Selection::BestValidation) => SelectionRule::BestValidation,
            (false, Selection::LastEpoch) => SelectionRule::LastEpoch,
            (true, Selection::BestValidation) => SelectionRule::StageByValidation,
            (true, Selection::LastEpoch) => SelectionRule::StageByTraining,
        }
    }

    /// Whether a statement of a run with these settings may say so. Older statements name the setting even where stages
    /// are selected.
    pub(super) fn fits(self, settings: &Settings) -> bool {
        let older = match settings.selection {
            Selection::BestValidation => SelectionRule::BestValidation,
            Selection::LastEpoch => SelectionRule::LastEpoch,
        };
        self == SelectionRule::of(settings) || self == older
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::MethodKind;

    #[test]
    fn a_statement_says_what_chose_and_older_ones_stay_valid() {
        let views = Settings::of(MethodKind::ProgapViews, Level::Edge);
        let without_validation = Settings { selection: Selection::LastEpoch, ..views.clone() };
        assert_eq!(SelectionRule::of(&views), SelectionRule::StageByValidation);
        assert_eq!(SelectionRule::of(&without_validation), SelectionRule::StageByTraining);
        assert!(SelectionRule::BestValidation.fits(&views) && !SelectionRule::LastEpoch.fits(&views));
        assert!(!SelectionRule::StageByValidation.fits(&without_validation));
        let progap = Settings::of(MethodKind::ProgapLabels, Level::Edge);
        assert!(
            SelectionRule::BestValidation.fits(&progap) && !SelectionRule::StageByValidation.fits(&progap)
        );
        let written = serde_json::to_string(&SelectionRule::StageByTraining).expect("text");
        assert_eq!(written, "\"stage-by-training\"");
    }
}
