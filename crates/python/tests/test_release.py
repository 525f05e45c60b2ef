"""Releases: opened elsewhere, looked up, exported and signed."""

import pickle
import time

import numpy as np
import pytest

import progap

from conftest import FAST


@pytest.fixture(scope="module")
def release(graph, tmp_path_factory):
    return progap.ProGAP(**FAST, epsilon=1.0).fit(graph, folder=tmp_path_factory.mktemp("one") / "release").release_


def test_a_release_is_pickled_by_its_path(release, tmp_path):
    again = pickle.loads(pickle.dumps(release))
    assert again.folder == release.folder.resolve()
    np.testing.assert_array_equal(again.predict_proba(), release.predict_proba())
    copied = progap.Release(release.folder)
    kept = pickle.dumps(copied)
    assert len(kept) < 1000
    moved = tmp_path / "elsewhere"
    release.folder.rename(moved)
    try:
        with pytest.raises(progap.ReleaseError):
            pickle.loads(kept)
    finally:
        moved.rename(release.folder)


def test_exports_are_signed_and_checked(release, tmp_path):
    key = progap.Key.new(tmp_path / "me")
    assert key.is_secret and key.file == tmp_path / "me.key" and (tmp_path / "me.pub").exists()
    with pytest.raises(progap.ReleaseError, match="force=True"):
        progap.Key.new(tmp_path / "me")
    public = progap.Key.load(tmp_path / "me.pub")
    assert not public.is_secret
    assert public.fingerprint == key.fingerprint == progap.Key.load(tmp_path / "me.key").fingerprint
    made = release.export(tmp_path / "out", sign=key, date="2026-01-31")
    assert made.signed_by == key.fingerprint and "manifest.sig" in made.files and len(made.sha256) == 64
    assert made.release.verify(signer=public).verify(signer=tmp_path / "me.pub").folder == tmp_path / "out"
    other = progap.Key.new(str(tmp_path / "other"))
    with pytest.raises(progap.ReleaseError, match="signature"):
        made.release.verify(signer=other)
    with pytest.raises(progap.ReleaseError, match="a signature needs the secret one"):
        release.export(tmp_path / "third", sign=public)
    with pytest.raises(progap.SettingsError, match="2026-01-31"):
        release.export(tmp_path / "third", date="yesterday")
    with pytest.raises(progap.ReleaseError, match="not pickled"):
        pickle.dumps(key)
    unsigned = release.export(tmp_path / "rows", with_rows=True)
    assert unsigned.signed_by is None
    np.testing.assert_array_equal(unsigned.release.predict(), release.predict())


def test_frames_say_whose_label_was_known():
    pytest.importorskip("pandas")
    x, edges, y = np.eye(4), [[0, 1, 2], [1, 2, 3]], ["a", "b", "a", None]
    graph = progap.Graph(x=x, edge_index=edges, y=y, train_mask=[0, 1])
    model = progap.ProGAP(level="none", method="mlp", epochs=1).fit(graph)
    assert model.to_frame()["labelled"].tolist() == [True, True, True, False]
    assert model.to_frame([3, 0])["labelled"].tolist() == [False, True]


def test_ids_are_looked_up_in_constant_time(tmp_path):
    nodes = 300_000
    ids = [f"person {k}" for k in range(nodes)]
    graph = progap.Graph(edge_index=[[0], [1]], y=np.arange(nodes) % 2, node_ids=ids, train_mask=[0, 1, 2, 3])
    model = progap.ProGAP(level="none", method="mlp", epochs=1).fit(graph)._model
    model.positions(["person 7"])
    begun = time.perf_counter()
    for k in range(100):
        assert model.positions([f"person {k}"]).tolist() == [k]
    assert (time.perf_counter() - begun) / 100 < 0.005
    assert model.ids(np.array([5, 2])) == ["person 5", "person 2"]


def test_fit_takes_what_is_a_graph_elsewhere(tmp_path, arrays):
    nx = pytest.importorskip("networkx")
    from types import SimpleNamespace

    def quick():
        return progap.ProGAP(level="none", method="mlp", epochs=1)

    np.savez(tmp_path / "g.npz", **arrays)
    for path in (tmp_path / "g.npz", str(tmp_path / "g.npz")):
        assert quick().fit(path).graph_.num_nodes == 300
    assert quick().fit(SimpleNamespace(**arrays)).graph_.num_edges == arrays["edge_index"].shape[1]
    club = nx.karate_club_graph()
    with pytest.raises(progap.DataError, match=r"club.*progap.from_networkx\(graph, label=...\)"):
        quick().fit(club)
    for _, data in club.nodes(data=True):
        data["label"] = data["club"]
    assert quick().fit(club).graph_.num_nodes == 34
    with pytest.raises(progap.DataError, match="leave y out"):
        quick().fit(club, [0, 1])
    with pytest.raises(TypeError, match="give a progap.Graph, a path"):
        quick().fit(5)
    pd = pytest.importorskip("pandas")
    with pytest.raises(progap.DataError, match="from_pandas"):
        quick().fit(pd.DataFrame({"id": [1]}))
