//! Randomised response on every possible edge, then GraphSAGE on the answer (Wu et al. 2022): all that follows the
//! noisy graph is post-processing.

use super::trainer::Trainer;
use super::{
    Capabilities, Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, QueryKind, QuerySpec,
    sage,
};
use crate::Result;
use crate::plan::PublicFacts;
use crate::settings::{Level, Settings};

/// The method.
pub(super) struct EdgeRand;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::Edge],
    what: "randomised response on every possible edge, then GraphSAGE on the answer",
    protects: "training and predictions: edges from everyone, with a delta of zero",
    paper: "Wu et al. 2022, LinkTeller",
    can: Capabilities { mixes_rows: true, is_pure: true, ..Capabilities::PLAIN },
    ..MethodSpec::plain(MethodKind::EdgeRand)
};

impl Method for EdgeRand {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        Defaults::published(Settings { method: MethodKind::EdgeRand, ..Settings::plain(level) })
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        sage::check(settings)
    }

    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        let graph = QuerySpec::of_kind(QueryKind::Response, 1.0);
        Program::new(settings, [sage::stage(settings, sizes, settings.depth).after([graph])])
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let graph = trainer.noisy_graph(progap_graph::free_memory())?;
        sage::fit_along(trainer, &graph)
    }
}
