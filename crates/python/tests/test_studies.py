"""Audits, reports, experiments, exports."""

import numpy as np
import pytest

import progap
from conftest import FAST


def test_an_audit_of_settings_and_of_a_release(graph, tmp_path):
    found = progap.audit(progap.ProGAP(epsilon=1.0, **FAST), graph, parts=["mechanism"], canaries=500)
    assert not found.refuted and found.findings and all(f["measured"] <= f["claimed"] for f in found.findings)
    assert "nothing found" in str(found) and "<table>" in found._repr_html_()
    release = progap.ProGAP(epsilon=1.0, **FAST).fit(graph).save(tmp_path / "release")
    attacked = progap.audit(release, graph, parts=["attacks"])
    assert attacked.link_inference and 0 <= attacked.membership_inference["auc"] <= 1
    assert progap.spent(graph)["edge-undirected"]["fits"] == 1, "an audit publishes nothing"
    with pytest.raises(ValueError, match="no part"):
        progap.audit(release, graph, parts=["everything"])
    with pytest.raises(progap.ReleaseError, match="other data"):
        progap.audit(release, progap.load("demo"), parts=["attacks"])


def test_a_report(graph, tmp_path):
    release = progap.ProGAP(**FAST).fit(graph).save(tmp_path / "release")
    made = progap.report(release, tmp_path / "report")
    assert "epsilon" in made.page.read_text() and made.tables() and made.figures()
    assert made._repr_html_().startswith("<iframe")
    assert progap.report(tmp_path / "release", tmp_path / "public", public=True).page.exists()
    with pytest.raises(progap.ReleaseError):
        progap.report(tmp_path / "nowhere", tmp_path / "other")
    with pytest.raises(progap.ReleaseError):
        progap.report(release, tmp_path / "release")


def test_an_experiment(graph, tmp_path):
    heard = []
    ask = {
        "out": tmp_path / "curve",
        "runs": 1,
        "epsilons": [0.5, 8.0],
        "methods": ["progap"],
        "levels": ["edge"],
        "settings": {"epochs": 2},
    }
    done = progap.experiment("tradeoff", graph, progress=heard.append, **ask)
    table = done.to_frame(library="pandas")
    assert {0.5, 8.0} <= set(table["epsilon"].dropna()) and table["test"].between(0, 1).all() and heard
    assert done.report.page.exists() and "cells" in repr(done)
    for asked in (
        {"name": "tradeof"},
        {"name": "tradeoff", "epsilons": ["much"]},
        {"name": "tradeoff", "settings": {"depht": 2}},
    ):
        with pytest.raises(progap.SettingsError, match="tradeof|much|depht") as refused:
            progap.experiment(data=graph, out=tmp_path / "wrong", **asked)
        assert (
            "--help" not in str(refused.value) and "Usage" not in str(refused.value) and "\n" not in str(refused.value)
        )


def test_an_experiment_from_a_file(graph, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("name = 'mine'\nruns = 1\n[base]\nmethod = 'progap-labels'\nepochs = 2\n[vary]\ndepth = [1, 2]\n")
    done = progap.experiment("custom", graph, file=file, out=tmp_path / "mine")
    assert len(done.to_frame(library="pandas")) == 2
    for asked in ({"name": "custom"}, {"name": "depth", "file": file}):
        with pytest.raises(progap.SettingsError, match="file"):
            progap.experiment(data=graph, out=tmp_path / "other", **asked)


def test_onnx_gives_the_probabilities_of_the_release(graph, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    release = progap.ProGAP(**FAST).fit(graph).save(tmp_path / "release")
    session = runtime.InferenceSession(release.to_onnx(), providers=["CPUExecutionProvider"])
    inputs = {}
    for given in session.get_inputs():
        number = given.name.removeprefix("aggregate-")
        inputs[given.name] = (
            graph.x if given.name == "features" else np.load(tmp_path / f"release/aggregates/{number}.npy")
        )
    (found,) = session.run(["probabilities"], inputs)
    np.testing.assert_allclose(found, release.predict_proba(), atol=1e-5)
    for form in ("onnx", "safetensors", "hf", "mlflow"):
        assert release.package(form, tmp_path / f"out-{form}")
    loaded = pytest.importorskip("safetensors.numpy").load_file(tmp_path / "out-safetensors")
    assert loaded and all(np.isfinite(tensor).all() for tensor in loaded.values())
    with pytest.raises(progap.SettingsError, match="no form"):
        release.package("pickle", tmp_path / "out")


@pytest.mark.parametrize("asked", [FAST, {}, {**FAST, "preset": "paper", "jk": "max"}], ids=str)
def test_mlflow_loads_the_folder(graph, tmp_path, asked):
    pyfunc, pandas = pytest.importorskip("mlflow.pyfunc"), pytest.importorskip("pandas")
    release = progap.ProGAP(**asked).fit(graph).save(tmp_path / "release")
    release.package("mlflow", tmp_path / "model")
    model = pyfunc.load_model(str(tmp_path / "model"))
    signature = model.metadata.signature
    names = signature.inputs.input_names()
    assert names[0] == "features" and signature.outputs.input_names() == ["probabilities"]
    aggregates = {f"aggregate-{file.stem}": np.load(file) for file in (tmp_path / "model/aggregates").glob("*.npy")}
    given = {name: graph.x if name == "features" else aggregates[name] for name in names}
    found = model.predict(given)
    found = found["probabilities"] if isinstance(found, (dict, pandas.DataFrame)) else found
    np.testing.assert_allclose(np.asarray(found), release.predict_proba(), atol=1e-5)
    told = model.metadata.metadata["dp"]
    assert (told["epsilon"], told["delta"], told["unit"]) == (
        release.guarantee.epsilon,
        release.guarantee.delta,
        release.guarantee.unit,
    )
    # Some of the nodes alone, and what does not fit.
    some = model.predict({name: rows[:7] for name, rows in given.items()})
    np.testing.assert_allclose(np.asarray(some["probabilities"]), release.predict_proba(range(7)), atol=1e-5)
    with pytest.raises(Exception, match="features"):
        model.predict({name: rows for name, rows in given.items() if name != "features"})
