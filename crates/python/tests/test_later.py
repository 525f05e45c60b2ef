"""Nodes that were not there in training: tables of them, and the features that they become."""

import numpy as np
import pytest

import progap

EDGES = [(f"p{k}", f"p{(k * 7 + 3) % 60}") for k in range(60)]


def people(pd):
    """Sixty people whose pay says all, with dates that have the day first."""
    rich = [k % 3 == 0 for k in range(60)]
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(60)],
            "label": ["rich" if is_rich else "poor" for is_rich in rich],
            "pay": [(90_000 if is_rich else 20_000) + k for k, is_rich in enumerate(rich)],
            "town": [["Oslo", "Rome", "Bern"][k % 7 % 3] for k in range(60)],
            "since": [f"{1 + k % 28:02}/{1 + k % 12:02}/2020" for k in range(60)],
            "age": [None if k % 10 == 0 else 20 + k for k in range(60)],
        }
    )


LATER = {
    "id": ["ann", "bob", "cid", "dan", "eve"],
    "pay": [91_000, 21_000, 21_000, 91_000, None],
    "town": ["Oslo", None, "Paris", "Rome", "Bern"],
    "since": ["14/03/2020", "2020-03-14", "01/02/2020", "03/14/2020", "01/02/2020"],
    "age": [30, None, 30, 30, 30],
}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    pd = pytest.importorskip("pandas")
    edges = pd.DataFrame(EDGES, columns=["source", "target"])
    graph = progap.from_pandas(people(pd), edges)
    return progap.ProGAP(level="none").fit(graph).save(tmp_path_factory.mktemp("later") / "release")


def test_data_frames_and_files_are_predicted_alike(release, tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pd.DataFrame(LATER)
    table.to_csv(tmp_path / "later.csv", index=False)
    frame, rejects = release.predict_table(table)
    assert isinstance(frame, pd.DataFrame) and isinstance(rejects, pd.DataFrame)
    assert list(frame.columns) == ["id", "class", "labelled", "p(poor)", "p(rich)"]
    assert list(frame["id"]) == ["ann", "bob"] and list(frame["class"]) == ["rich", "poor"]
    assert not frame["labelled"].any()
    assert list(rejects["row"]) == [2, 3, 4] and list(rejects["column"]) == ["town", "since", "pay"]
    assert "Paris" in rejects["reason"][0] and "day first" in rejects["reason"][1] and "missing" in rejects["reason"][2]
    in_file = release.predict_table(tmp_path / "later.csv")
    np.testing.assert_array_equal(in_file.frame["p(rich)"], frame["p(rich)"])
    assert list(in_file.rejects["row"]) == [4, 5, 6]
    of_polars = release.predict_table(pl.DataFrame(LATER).lazy(), library="polars")
    assert isinstance(of_polars.frame, pl.DataFrame) and of_polars.frame["id"].to_list() == ["ann", "bob"]
    assert isinstance(release.predict_table(pl.DataFrame(LATER)).rejects, pl.DataFrame)
    frame, rejects = release.predict_table(table, lenient=True)
    assert list(frame["id"]) == ["ann", "bob", "cid"] and list(rejects["row"]) == [3, 4]


def test_rows_without_an_id_go_by_their_index(release):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    good = {name: values[:2] for name, values in LATER.items() if name != "id"}
    frame, rejects = release.predict_table(pd.DataFrame(good, index=pd.Index(["x", "y"], name="who")))
    assert list(frame["id"]) == ["x", "y"] and len(rejects) == 0
    assert release.predict_table(pl.DataFrame(good)).frame["id"].to_list() == ["0", "1"]
    named = pd.DataFrame({**good, "name": ["x", "y"]})
    assert list(release.predict_table(named, id="name").frame["id"]) == ["x", "y"]
    with pytest.raises(progap.DataError, match='the table: there is no column "pay" or "age", as in training'):
        release.predict_table(pd.DataFrame({"id": [1], "town": ["Oslo"], "since": ["2020-01-01"]}))
    with pytest.raises(progap.DataError, match="give a table of pandas or polars, or a file"):
        release.predict_table(5)


@pytest.mark.parametrize("method", ["progap-views", "progap-labels", "mlp", "gap"])
def test_onnx_on_the_features_of_a_table_is_its_predictions(method, tmp_path):
    pd, runtime, onnx = pytest.importorskip("pandas"), pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    graph = progap.from_pandas(people(pd), pd.DataFrame(EDGES, columns=["source", "target"]))
    release = progap.ProGAP(level="edge", method=method).fit(graph).save(tmp_path / "release")
    table = pd.DataFrame(LATER)
    ids, x, rejects = release.features(table)
    assert list(ids) == ["ann", "bob"] and len(rejects) == 3
    assert x.dtype == np.float32 and x.shape[1] == graph.num_features
    session = runtime.InferenceSession(release.to_onnx(for_rows=True), providers=["CPUExecutionProvider"])
    (found,) = session.run(["probabilities"], {"features": x})
    frame, _ = release.predict_table(table)
    np.testing.assert_allclose(found, frame[["p(poor)", "p(rich)"]].to_numpy(), atol=1e-5)
    for for_rows in (False, True):
        model = onnx.load_from_string(release.to_onnx(for_rows=for_rows)).graph
        used = {name for node in model.node for name in node.input} | {output.name for output in model.output}
        assert {tensor.name for tensor in model.initializer} <= used
        assert all(set(node.output) <= used for node in model.node)
