"""Training: scikit-learn's words, guarantees, releases, and being stopped."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import progap
from conftest import FAST, network


@pytest.fixture(scope="module")
def model(graph):
    return progap.ProGAP(level="edge", epsilon=1.0, **FAST).fit(graph)


def test_a_private_model(graph, model):
    g = model.guarantee_
    assert g.private and g and 0.9 < g.epsilon <= 1.0 and 0 < g.delta < 1e-3 and g.unit == "edge-undirected"
    assert "an observer can hardly tell" in str(g) and repr(g).startswith("Guarantee(epsilon ")
    assert g.statement["mechanisms"] and g.public and g.not_covered
    assert model.classes_.tolist() == [0, 1, 2] and model.n_features_in_ == 8
    p = model.predict_proba()
    assert p.shape == (300, 3) and p.dtype == np.float32
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(), model.classes_[p.argmax(1)])
    np.testing.assert_array_equal(model.predict([7, 3]), model.predict()[[7, 3]])
    np.testing.assert_array_equal(model.predict(["7", "3"]), model.predict()[[7, 3]])
    np.testing.assert_array_equal(model.predict(graph.test_mask), model.predict()[graph.test_mask])
    expected = np.mean(model.predict()[graph.test_mask] == graph.y[graph.test_mask])
    assert model.score() == pytest.approx(expected) == pytest.approx(model.metrics_["test_accuracy"])


@pytest.mark.parametrize("level", ["none", "edge", "node"])
@pytest.mark.parametrize("method", [name for name, _ in progap._estimator.SETTINGS["method"]["choices"]])
def test_every_method_at_every_level(graph, method, level):
    model = progap.ProGAP(method=method, level=level, random_state=1)
    try:
        model.settings()
    except progap.SettingsError as error:
        assert "level" in str(error), error
        return
    for quicker in ({"epochs": 2}, {"batch_size": 64}):
        try:
            progap.ProGAP(**{**model.get_params(), **quicker}).settings()
        except progap.SettingsError as error:
            assert "no effect" in str(error), error
        else:
            model.set_params(**quicker)
    with pytest.warns(progap.NotPrivateWarning) if level != "none" else _nothing():
        model.fit(graph)
    assert model.predict().shape == (300,)
    assert not model.guarantee_.private and model.guarantee_.epsilon is None


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_settings_are_those_of_the_library():
    declared = progap._progap.declarations()
    offered = {about["name"] for about in declared if about["offered"]}
    assert offered <= set(progap.ProGAP().get_params())
    for about in declared:
        if about["offered"]:
            assert f"    {about['name']} : " in progap.ProGAP.__doc__
    assert progap.ProGAP(level="node").settings()["epsilon"] == 8.0
    assert (
        progap.ProGAP(method="progap-labels", epsilon=np.float32(2), depth=np.int64(3), layerwise=np.True_).settings()[
            "depth"
        ]
        == 3
    )


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"epsilon": -1.0}, "the epsilon -1 is out of range; give 0.001 to 1000"),
        ({"epsilon": math.nan}, "the epsilon NaN is out of range"),
        ({"level": "nod"}, "none, edge, node"),
        ({"method": 3}, "cannot be 3"),
        ({"method": "progap", "clip": 0.5}, "`clip` has no effect: it belongs to level node; leave it out"),
        ({"method": "progap", "depth": 2.5}, "cannot be 2.5: give a whole number"),
        ({"method": "progap", "epochs": 0}, "the number of epochs 0 is out of range"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_any_work(graph, wrong, said):
    with pytest.raises(progap.SettingsError, match=said):
        progap.ProGAP(**wrong).fit(graph)


def test_arguments_that_are_not_there(graph):
    with pytest.raises(TypeError, match="no argument 'epsilom'"):
        progap.ProGAP(epsilom=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nope'"):
        progap.ProGAP().set_params(nope=1)
    with pytest.raises(TypeError, match="setting depth cannot be of type list"):
        progap.ProGAP(depth=[2]).fit(graph)
    with pytest.raises(progap.DataError, match="rows alone are no graph"):
        progap.ProGAP().fit(np.ones((3, 3)), [0, 1, 0])
    with pytest.raises(AttributeError if not _has_sklearn() else ValueError, match="not fitted"):
        progap.ProGAP().predict()
    with pytest.raises(ValueError, match="preset"):
        progap.ProGAP(preset="best").fit(graph)


def _has_sklearn():
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return False
    return True


def test_bad_questions_to_a_model(model):
    for nodes in ([300], [-1]):
        with pytest.raises(progap.DataError, match="outside 0..300"):
            model.predict(nodes)
    with pytest.raises(progap.DataError, match='no node "zoe"'):
        model.predict(["zoe"])
    with pytest.raises(progap.DataError, match="give a list of nodes"):
        model.predict("7")
    with pytest.raises(progap.DataError, match="another graph"):
        model.predict(progap.Graph(**network(seed=5)))
    assert model.predict([]).shape == (0,)


def test_the_same_seed_gives_the_same_model_as_the_command(graph, tmp_path):
    graph.save(tmp_path / "small.progap")
    with pytest.warns(progap.NotPrivateWarning, match="no guarantee"):
        model = progap.ProGAP(random_state=3, **FAST).fit(graph)
    command = [
        sys.executable,
        "-m",
        "progap",
        "train",
        str(tmp_path / "small.progap"),
        "--seed",
        "3",
        "--method",
        "progap-labels",
        "--epochs",
        "3",
    ]
    subprocess.run([*command, "--out", str(tmp_path / "release"), "--quiet"], check=True)
    np.testing.assert_array_equal(progap.Release(tmp_path / "release").predict_proba(), model.predict_proba())


@pytest.mark.parametrize("level", ["edge", "node"])
def test_save_verify_and_predict(graph, tmp_path, level):
    model = progap.ProGAP(
        method="progap-labels", level=level, epochs=2, batch_size=64 if level == "node" else None
    ).fit(graph)
    saved = model.save(tmp_path / "release")
    release = progap.Release(tmp_path / "release").verify()
    np.testing.assert_array_equal(release.predict_proba(), model.predict_proba())
    np.testing.assert_array_equal(release.predict(["5", "250"]), model.predict([5, 250]))
    assert release.guarantee.statement == model.guarantee_.statement and saved.folder == release.folder
    assert any(finding["verdict"] == "claimed" for finding in release.findings())
    with pytest.raises(progap.ReleaseError, match="not empty"):
        model.save(tmp_path / "release")
    # A stranger's change is found.
    statement = json.loads((tmp_path / "release/privacy.json").read_text())
    (tmp_path / "release/privacy.json").write_text(json.dumps({**statement, "epsilon": 0.1}))
    with pytest.raises(progap.ReleaseError, match="privacy.json"):
        progap.Release(tmp_path / "release")


def test_into_a_folder(graph, tmp_path):
    model = progap.ProGAP(**FAST).fit(graph, folder=tmp_path / "release")
    assert model.release_.verify().folder == tmp_path / "release"
    copied = model.save(tmp_path / "copy").verify()
    np.testing.assert_array_equal(copied.predict_proba(), model.predict_proba())
    with pytest.raises(progap.ReleaseError, match="not empty"):
        progap.ProGAP(**FAST).fit(graph, folder=tmp_path / "release")
    with pytest.raises(progap.ReleaseError):
        progap.Release(tmp_path)


def test_frames_of_predictions(model):
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        table = model.to_frame([3, 5], library=library)
        assert list(table.columns) == ["id", "class", "labelled", "p(0)", "p(1)", "p(2)"] and len(table) == 2
    with pytest.raises(ValueError, match="library"):
        model.to_frame(library="excel")


def test_a_callback_hears_every_epoch_and_can_stop(graph, tmp_path):
    heard = []
    progap.ProGAP(method="progap-labels", depth=1, epochs=4, progress=heard.append).fit(graph)
    assert [(p.stage, p.epoch) for p in heard] == [
        (stage, epoch) for stage in range(heard[0].stages) for epoch in range(1, 5)
    ]
    assert "stage 1 of" in repr(heard[0]) and threading.current_thread() is threading.main_thread()
    with pytest.raises(progap.Stopped, match="lost"):
        progap.ProGAP(method="progap-labels", progress=lambda p: p.epoch < 2).fit(graph)
    folder = tmp_path / "release"
    with pytest.raises(progap.Stopped, match="resume"):
        progap.ProGAP(method="progap-labels", progress=lambda p: p.epoch < 2, epochs=9).fit(graph, folder=folder)
    with pytest.raises(progap.ReleaseError):
        progap.Release(folder)
    assert progap.resume(graph, folder).verify().settings["epochs"] == 9
    with pytest.raises(ZeroDivisionError):
        progap.ProGAP(method="progap-labels", progress=lambda p: 1 / 0).fit(graph)


def test_a_bar_of_tqdm(graph, capsys):
    pytest.importorskip("tqdm")
    progap.ProGAP(progress=True, **FAST).fit(graph)
    assert "100%" in capsys.readouterr().err


@pytest.fixture
def hears_ctrl_c():
    """Jobs in the background of a shell ignore Ctrl-C, and so would Python."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_and_can_be_resumed(graph, tmp_path, hears_ctrl_c):
    folder = tmp_path / "release"

    def interrupt():
        while not folder.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        progap.ProGAP(method="progap-labels", epochs=100_000, depth=1).fit(graph, folder=folder)
    if sys.version_info >= (3, 11):
        assert "progap.resume" in stopped.value.__notes__[0]
    with pytest.raises(progap.Stopped):
        progap.resume(graph, folder, progress=lambda p: False)


def test_it_shows_itself(model):
    assert repr(progap.ProGAP(epsilon=2.0, level="edge")) == "ProGAP(level='edge', epsilon=2.0)"
    assert "epsilon" in model._repr_html_() and "<code>" in progap.ProGAP()._repr_html_()


def test_the_command_is_in_the_package():
    version = subprocess.run([sys.executable, "-m", "progap", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"progap {progap.__version__}"
    wrong = subprocess.run([sys.executable, "-m", "progap", "trian"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "trian" in wrong.stderr
    missing = subprocess.run([sys.executable, "-m", "progap", "verify", "nowhere"], capture_output=True, text=True)
    assert missing.returncode == 1 and missing.stderr.startswith("error: ")


def test_at_node_level_predictions_say_for_whom_they_are(graph, tmp_path):
    model = progap.ProGAP(level="node", method="progap-labels", epochs=1, batch_size=64).fit(graph)
    release = model.save(tmp_path / "release")
    said = release.guarantee.statement["in_words"]
    calls = [
        model.predict,
        model.predict_proba,
        model.to_frame,
        model.score,
        release.predict,
        release.predict_proba,
        release.to_frame,
    ]
    for call in calls:
        with pytest.warns(
            progap.AudienceWarning, match="give it to that node, or to those who may see its features"
        ) as caught:
            call()
        assert all(str(warning.message) in said for warning in caught if warning.category is progap.AudienceWarning)
        assert caught[0].filename == __file__
    for call in (*calls, release.predict_table):
        assert "At level node a prediction" in " ".join(call.__doc__.split())


def test_at_edge_level_predictions_are_for_everyone(model, recwarn):
    model.predict(), model.predict_proba(), model.score()
    assert not [warning for warning in recwarn if warning.category is progap.AudienceWarning]


def test_a_seeded_model_states_no_guarantee(graph, tmp_path):
    with pytest.warns(progap.NotPrivateWarning):
        model = progap.ProGAP(random_state=1, **FAST).fit(graph)
    for guarantee in (model.guarantee_, model.save(tmp_path / "release").guarantee):
        assert not guarantee.private and (guarantee.epsilon, guarantee.delta, guarantee.unit) == (None, None, None)
        assert guarantee.statement["epsilon"] is None and guarantee.statement["delta"] is None
        assert guarantee.statement["planned"]["epsilon"] <= 1.0
        assert "none: seeded run" in repr(guarantee)


def test_values_that_single_precision_cannot_hold_decide_nothing():
    arrays = network()
    for value in (1e39, -1e39, np.inf):
        x = arrays["x"].astype(np.float64)
        x[7, 0] = value
        for given in (x, x.astype(np.float32)):
            g = progap.Graph(**{**arrays, "x": given})
            assert np.isfinite(g.x).all()
            progap.ProGAP(level="node", method="progap-labels", epochs=1, batch_size=64).fit(g)
