"""Nobody spends a budget many times without a word: not by hand, and not by scikit-learn's tools."""

import warnings

import numpy as np
import pytest

import progap
from conftest import FAST, network


def private_warnings(recorded):
    return [str(warning.message) for warning in recorded if issubclass(warning.category, progap.BudgetWarning)]


def test_the_second_fit_on_the_same_edges_says_what_both_cost(graph, arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = progap.ProGAP(**FAST).fit(graph)
    with pytest.warns(progap.BudgetWarning, match="private fit number 2 .* epsilon") as recorded:
        progap.ProGAP(**FAST).fit(graph)
    both = progap.spent(graph)["edge-undirected"]
    event = progap.Event.from_json(__import__("json").dumps(first.guarantee_.statement["event"]))
    expected = progap.accounting.epsilon(event + event, delta=first.guarantee_.delta).value
    assert both["fits"] == 2 and both["epsilon"] == pytest.approx(expected)
    assert f"epsilon {expected:.4f}" in private_warnings(recorded)[0]
    assert recorded[0].filename == __file__, "the line that fits is shown"
    # Other features, labels or splits are the same private edges.
    for same in ({"x": None}, {"y": arrays["y"] % 2}, {"train_mask": np.arange(200)}):
        with pytest.warns(progap.BudgetWarning):
            progap.ProGAP(**FAST).fit(progap.Graph(**{**arrays, **same}))
    # Other edges are other data.
    with warnings.catch_warnings():
        warnings.simplefilter("error", progap.BudgetWarning)
        progap.ProGAP(**FAST).fit(progap.Graph(**network(seed=9)))
        # Nothing private, nothing spent.
        progap.ProGAP(level="none", **FAST).fit(graph)
        with pytest.warns(progap.NotPrivateWarning):
            progap.ProGAP(random_state=1, **FAST).fit(graph)
    assert progap.spent(graph)["edge-undirected"]["fits"] == 5


def test_a_fit_that_was_stopped_counts(graph):
    with pytest.raises(progap.Stopped):
        progap.ProGAP(progress=lambda p: False, **FAST).fit(graph)
    assert progap.spent(graph)["edge-undirected"]["fits"] == 1
    with pytest.raises(progap.Stopped), pytest.warns(progap.BudgetWarning) as recorded:
        progap.ProGAP(progress=lambda p: False, **FAST).fit(graph)
    assert recorded[0].filename == __file__


@pytest.mark.parametrize("error", [ValueError, OSError, progap.DataError, KeyboardInterrupt])
def test_a_fit_that_its_callback_breaks_off_counts(graph, error):
    def wrong(progress):
        raise error("enough")

    with pytest.raises(error):
        progap.ProGAP(progress=wrong, **FAST).fit(graph)
    assert progap.spent(graph)["edge-undirected"]["fits"] == 1


def test_what_is_refused_costs_nothing(graph, tmp_path):
    for wrong in ({"epsilon": -1.0}, {"method": "progap-labels", "clip": 1.0}):
        with pytest.raises(progap.SettingsError):
            progap.ProGAP(**wrong).fit(graph)
    (tmp_path / "taken").write_text("a file")
    for progress in (None, lambda p: True):
        with pytest.raises(progap.ReleaseError):
            progap.ProGAP(progress=progress, **FAST).fit(graph, folder=tmp_path)
    assert progap.spent(graph) == {}


def test_a_ledger_refuses(graph, tmp_path):
    ledger = progap.Ledger(tmp_path / "budget.db")
    with pytest.raises(progap.LedgerError, match="small"):
        progap.ProGAP(ledger=ledger, **FAST).fit(graph)
    ledger.register(graph, epsilon=1.2, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = progap.ProGAP(epsilon=1.0, ledger=ledger, **FAST).fit(graph)
    assert model.guarantee_.private
    (status,) = ledger.status()
    assert (status["name"], status["unit"], status["runs"]) == ("small", "edge-undirected", 1) and 0 < status[
        "spent"
    ] <= 1.2
    heard = []
    with pytest.raises(progap.LedgerError, match="this run is refused"):
        progap.ProGAP(epsilon=1.0, ledger=tmp_path / "budget.db", progress=heard.append, **FAST).fit(graph)
    assert not heard and ledger.status()[0]["runs"] == 1
    ledger.set_budget("small", unit="edge-undirected", epsilon=3.0, delta=1e-5, reason="a second model was agreed on")
    progap.ProGAP(epsilon=1.0, ledger=ledger, **FAST).fit(graph)
    assert len(ledger.runs("small", "edge-undirected")) == 2 and ledger.check()["runs"] == 2
    assert "<table>" in ledger._repr_html_() and repr(ledger).startswith("Ledger(")
    with pytest.raises(progap.SettingsError, match="leave out `seed` or `ledger`"):
        with pytest.warns(progap.NotPrivateWarning):
            progap.ProGAP(ledger=ledger, random_state=1, **FAST).fit(graph)
    with pytest.raises(progap.SettingsError, match="cannot be charged"):
        progap.ProGAP(ledger=ledger, level="none", **FAST).fit(graph)
    (tmp_path / "no.db").write_text("no ledger")
    with pytest.raises(progap.LedgerError):
        progap.Ledger(tmp_path / "no.db")


def test_a_ledger_gives_the_same_people_one_budget(graph, arrays, tmp_path):
    ledger = progap.Ledger(tmp_path / "budget.db")
    ledger.register(graph, epsilon=9.0, delta=1e-5, name="first", unit=["edge", "edge-undirected"])
    order = np.random.default_rng(1).permutation(len(arrays["y"]))
    place = np.argsort(order)
    reordered = {
        **arrays,
        "x": arrays["x"][order],
        "y": arrays["y"][order],
        "edge_index": place[arrays["edge_index"]],
        "train_mask": None,
    }
    for same in (
        {**arrays, "y": arrays["y"] % 2},
        {**arrays, "x": arrays["x"][:, 1:]},
        {**arrays, "edge_index": arrays["edge_index"][:, 2:]},
        reordered,
    ):
        with pytest.raises(progap.LedgerError, match="first"):
            ledger.register(progap.Graph(**same), epsilon=9.0, delta=1e-5, name="second", unit="edge")
    other = progap.Graph(**{**arrays, "y": arrays["y"] % 2})
    with pytest.raises(progap.SettingsError, match="reason"):
        ledger.register(other, epsilon=9.0, delta=1e-5, name="second", unit="edge", same_people=False)
    ledger.register(other, epsilon=9.0, delta=1e-5, name="second", unit="edge", same_people=False, reason="a twin town")
    assert ledger.status()[2]["other_people"] == "a twin town"


def test_a_fit_is_charged_in_every_unit_and_edge_level_needs_public_rows(graph, tmp_path):
    ledger = progap.Ledger(tmp_path / "budget.db")
    ledger.register(graph, epsilon=30.0, delta=1e-5, unit=["edge", "edge-undirected", "node"])
    with pytest.raises(progap.LedgerError, match="features and labels"):
        progap.ProGAP(ledger=ledger, **FAST).fit(graph)
    ledger.set_public_rows("small", reason="they are in print")
    progap.ProGAP(ledger=ledger, **FAST).fit(graph)
    progap.ProGAP(level="node", epsilon=4.0, batch_size=50, ledger=ledger, **FAST).fit(graph)
    spent = {status["unit"]: status for status in ledger.status()}
    assert [spent[unit]["runs"] for unit in ("edge", "edge-undirected", "node")] == [2, 2, 1]
    assert spent["node"]["uncounted"] == 1 and spent["edge-undirected"]["spent"] > spent["edge"]["spent"] > 0
    receipts = ledger.runs("small", "edge")
    assert ledger.check(against=receipts)["runs"] == 2
    receipts[1]["hash"] = receipts[0]["hash"]
    with pytest.raises(progap.LedgerError, match="older copy"):
        ledger.check(against=receipts)


def test_fits_count_in_every_unit_and_by_people(graph, arrays):
    node = {"level": "node", "epsilon": 4.0, "batch_size": 50, **FAST}
    progap.ProGAP(**FAST).fit(graph)
    with pytest.warns(progap.BudgetWarning, match="1 of them at edge level show features and labels"):
        progap.ProGAP(**node).fit(graph)
    spent = progap.spent(graph)
    assert [spent[unit]["fits"] for unit in ("edge", "edge-undirected", "node")] == [2, 2, 1]
    assert spent["edge-undirected"]["epsilon"] > 1.0
    # At node level rows are what is protected: without the edges they are the same people.
    with pytest.warns(progap.BudgetWarning, match="number 3"):
        progap.ProGAP(**node).fit(progap.Graph(**{**arrays, "edge_index": arrays["edge_index"][:, :2]}))


# -- scikit-learn's own tools
# ----------------------------------------------------------------------------------------------------


def test_clone_and_parameters():
    sklearn = pytest.importorskip("sklearn.base")
    model = progap.ProGAP(level="node", epsilon=4.0, clip=0.5)
    copy = sklearn.clone(model)
    assert copy is not model and copy.get_params() == model.get_params()
    assert sklearn.is_classifier(model)


def test_cross_validation_adds_up_what_its_folds_cost(graph):
    selection = pytest.importorskip("sklearn.model_selection")
    model = progap.ProGAP(graph=graph, **FAST)
    with pytest.warns(progap.BudgetWarning) as recorded:
        scores = selection.cross_val_score(model, graph.nodes, graph.y, cv=3)
    assert scores.shape == (3,) and scores.mean() > 0.4
    said = private_warnings(recorded)
    assert len(said) == 2 and "number 3" in said[-1]
    spent = progap.spent(graph)["edge-undirected"]
    assert spent["fits"] == 3 and spent["epsilon"] > 1.0


def test_a_grid_search_adds_up_what_its_fits_cost(graph):
    selection = pytest.importorskip("sklearn.model_selection")
    search = selection.GridSearchCV(progap.ProGAP(graph=graph, **FAST), {"depth": [1, 2]}, cv=2)
    with pytest.warns(progap.BudgetWarning) as recorded:
        search.fit(graph.nodes, graph.y)
    assert "number 5" in private_warnings(recorded)[-1] and progap.spent(graph)["edge-undirected"]["fits"] == 5
    assert search.best_params_["depth"] in (1, 2) and search.predict(graph.nodes).shape == (300,)


def test_a_ledger_stops_a_grid_search(graph, tmp_path):
    selection = pytest.importorskip("sklearn.model_selection")
    ledger = progap.Ledger(tmp_path / "budget.db")
    ledger.register(graph, epsilon=1.2, delta=1e-5)
    search = selection.GridSearchCV(
        progap.ProGAP(graph=graph, ledger=ledger, **FAST), {"depth": [1, 2]}, cv=2, error_score="raise"
    )
    with pytest.raises(progap.LedgerError):
        search.fit(graph.nodes, graph.y)
    assert ledger.status()[0]["runs"] == 1


def test_workers_of_joblib_get_the_graph(graph):
    selection = pytest.importorskip("sklearn.model_selection")
    model = progap.ProGAP(graph=graph, level="none", **FAST)
    assert selection.cross_val_score(model, graph.nodes, graph.y, cv=2, n_jobs=2).shape == (2,)


def test_folds_are_what_is_trained_on(graph):
    model = progap.ProGAP(graph=graph, level="none", **FAST)
    model.fit(graph.nodes[:200], graph.y[:200])
    assert model.graph_.train_mask.sum() == 200 and not model.graph_.train_mask[200:].any()
    assert model.score(graph.nodes[200:], graph.y[200:]) == pytest.approx(model.score())
    with pytest.raises(progap.DataError, match="other labels"):
        model.fit(graph.nodes[:5], ["x"] * 5)
    with pytest.raises(progap.DataError, match="outside 0..300"):
        model.fit([300])
    with pytest.raises(progap.DataError, match="X has 5 nodes and y has 4 labels"):
        model.fit(graph.nodes[:5], graph.y[:4])
    model.fit(graph.train_mask, graph.y[graph.train_mask].astype(float))
    np.testing.assert_array_equal(model.graph_.train_mask, graph.train_mask)
    assert model.score([0, 1, 2], graph.y[:3].astype(str)) == model.score([0, 1, 2])


def test_labels_that_were_shuffled_are_not_taken_for_those_of_the_graph(graph):
    selection = pytest.importorskip("sklearn.model_selection")
    model = progap.ProGAP(graph=graph, level="none", **FAST)
    with pytest.raises(progap.DataError, match="other labels than the graph"):
        selection.permutation_test_score(model, graph.nodes, graph.y, cv=2, n_permutations=1, random_state=0)


#: These checks fit rows of features. There is no graph in them, and an estimator that quietly took rows for a graph
#: without edges would be wrong in a way that nobody sees: ours refuses, in one sentence.
ROWS_ALONE = (
    "it fits rows of features; ours are about the nodes of a graph, and fit takes a Graph or positions of its nodes"
)
EXPECTED_FAILURES = dict.fromkeys(
    """
    check_classifier_data_not_an_array check_classifiers_classes check_classifiers_one_label
    check_classifiers_regression_target check_classifiers_train check_complex_data check_dict_unchanged
    check_dont_overwrite_parameters check_dtype_object check_estimator_sparse_array check_estimator_sparse_matrix
    check_estimator_sparse_tag check_estimators_dtypes check_estimators_empty_data_messages
    check_estimators_fit_returns_self check_estimators_nan_inf check_estimators_overwrite_params
    check_estimators_pickle check_f_contiguous_array_estimator check_fit2d_1feature check_fit2d_1sample
    check_fit2d_predict1d check_fit_check_is_fitted check_fit_idempotent check_fit_score_takes_y check_n_features_in
    check_n_features_in_after_fitting check_positive_only_tag_during_fit check_readonly_memmap_input
    check_supervised_y_2d check_methods_sample_order_invariance check_methods_subset_invariance check_fit1d
    """.split(),
    ROWS_ALONE,
)


def test_scikit_learns_checks_of_estimators():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")

    class TakesRows(progap.ProGAP):
        """Says that it takes rows, as nearly all checks are left out for estimators that do not."""

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
            return tags

    results = checks.check_estimator(TakesRows(), expected_failed_checks=EXPECTED_FAILURES, on_skip=None)
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert {
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimators_unfitted",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    } <= passed, sorted(passed)


def test_what_the_checks_look_for_holds_on_graphs(graph):
    """The same on data that it takes: parameters stay as they are, fit returns the estimator, and what it learnt ends
    in an underscore."""
    model = progap.ProGAP(**FAST)
    before = dict(model.get_params())
    assert model.fit(graph) is model and model.get_params() == before
    learnt = {name for name in vars(model) if name not in before and not name.startswith("_")}
    assert learnt and all(name.endswith("_") for name in learnt)
    with pytest.raises(TypeError, match="not pickled"):
        __import__("pickle").dumps(model)
