//! Every method on the same rails: trained, stopped, resumed, verified, asked.

mod common;

use common::*;
use progap::settings::Method;
use progap::{Level, Settings};

fn settings(method: Method, level: Level) -> Settings {
    let usual = Settings::of(method, level);
    let epochs = if level == Level::Node { 3 } else { 20 };
    Settings { epochs, batch_size: 100, seed: Some(7), ..usual }
}

#[test]
fn sage_learns_from_the_graph_and_predicts_without_it() {
    let (_keep, folder) = folder();
    let release = train(&settings(Method::Sage, Level::None), &folder).expect("trained");
    assert!(!release.statement.private);
    assert_verified(&folder);
    assert_predicts_as_measured(&release);
    assert_eq!(release.nodes().graph().edges(), 0);
    let mlp = train(&settings(Method::Mlp, Level::None), &folder.with_extension("mlp")).expect("trained");
    let (with, without) = (release.metrics.test_accuracy, mlp.metrics.test_accuracy);
    assert!(with > without + 0.05, "the graph helps: {with} {without}");
}

#[test]
fn every_depth_of_sage_is_kept_and_resumed() {
    for depth in [1, 3] {
        let settings = Settings { depth, epochs: 4, ..settings(Method::Sage, Level::None) };
        stopped_and_resumed_ends_the_same(&settings, &[1, 3]);
    }
}

#[test]
fn what_a_method_does_not_have_is_refused_by_name() {
    let refused = |settings: Settings| {
        let (_keep, folder) = folder();
        let error = train(&settings, &folder).expect_err("refused");
        assert!(!folder.exists(), "{error}: something was written");
        error.to_string()
    };
    let sage = settings(Method::Sage, Level::None);
    let message = refused(settings(Method::Sage, Level::Edge));
    assert!(message.contains("sage has no level edge") && message.contains("progap, gap, mlp"), "{message}");
    assert!(refused(Settings { depth: 6, ..sage.clone() }).contains("1 to 5"));
    assert!(refused(Settings { depth: 0, ..sage.clone() }).contains("1 to 5"));
    assert!(refused(Settings { jk: progap::settings::Combination::Lstm, ..sage }).contains("--jk"));
}
