"""The order of nodes: that of the data in memory, that of ids in a release."""

import pickle

import numpy as np
import pytest
from conftest import FAST, network

import progap


def with_ids(nodes: int = 300) -> progap.Graph:
    """The small network, whose nodes have names in another order than that of the names."""
    names = [f"p{at * 7 % nodes:03}" for at in range(nodes)]
    return progap.Graph(**network(nodes), node_ids=names, name="small")


def ring(nodes: int = 300) -> progap.Graph:
    at = np.arange(nodes)
    pairs = np.stack([at, (at + 1) % nodes])
    x = (at[:, None] % np.array([2, 3, 5]) == 0).astype(np.float32)
    return progap.Graph(x=x, edge_index=np.hstack([pairs, pairs[::-1]]), y=at // 10 % 2, name="ring")


@pytest.mark.parametrize("folder", [False, True])
def test_predictions_by_position_are_in_the_order_of_the_data(tmp_path, folder):
    g = with_ids()
    model = progap.ProGAP(**FAST, epsilon=8.0, random_state=1)
    model.fit(g, folder=tmp_path / "release") if folder else model.fit(g)
    release = progap.Release(tmp_path / "release") if folder else model.save(tmp_path / "release")
    assert list(release.to_frame()["id"]) == sorted(g.node_ids) != list(g.node_ids)
    assert list(model.predict()) == list(release.predict(list(g.node_ids)))
    assert list(model.predict([0, 5])) == list(model.predict([g.node_ids[0], g.node_ids[5]]))
    assert list(pickle.loads(pickle.dumps(g)).node_ids) == list(g.node_ids)


def test_an_order_that_tells_edges_is_saved_only_by_a_word_of_the_owner(tmp_path):
    g = ring()
    assert any("order of nodes" in said for said in g.check())
    with pytest.raises(progap.ProGAPError, match="shuffle"):
        progap.ProGAP(**FAST).fit(g, folder=tmp_path / "no")
    with pytest.raises(progap.ProGAPError, match="shuffle"):
        progap.ProGAP(**FAST).fit(g).save(tmp_path / "no")
    assert not (tmp_path / "no").exists()
    later = progap.ProGAP(**FAST, random_state=1).fit(g)
    assert "renumbered" in str(later.save(tmp_path / "later", shuffle=True).guarantee.statement["public"])
    later.save(tmp_path / "known", order="public").verify()
    progap.Release(tmp_path / "later").verify()
    model = progap.ProGAP(**FAST, shuffle=True, random_state=1).fit(g)
    release = model.save(tmp_path / "shuffled")
    assert not np.array_equal(model.predict_proba(), release.predict_proba())
    numbers = np.loadtxt(tmp_path / "shuffled/private/numbers.csv", delimiter=",", skiprows=1, dtype=int)
    assert np.array_equal(model.predict_proba(), release.predict_proba(numbers[:, 1]))
    progap.ProGAP(**FAST, order="public").fit(g).save(tmp_path / "public").verify()
