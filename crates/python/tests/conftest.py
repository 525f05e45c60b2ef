"""What several tests need: a small network with communities."""

import numpy as np
import pytest

import progap

#: A quick model, of a method that is trained in epochs.
FAST = {"method": "progap-labels", "epochs": 3}


def network(nodes: int = 300, classes: int = 3, seed: int = 0) -> dict:
    """Arrays of a network in which neighbours are often of the same class, and features say a little about it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=nodes)
    pairs = rng.integers(nodes, size=(2, 12 * nodes))
    alike = y[pairs[0]] == y[pairs[1]]
    kept = (alike | (rng.random(pairs.shape[1]) < 0.2)) & (pairs[0] != pairs[1])
    pairs = pairs[:, kept]
    both = np.unique(np.hstack([pairs, pairs[::-1]]), axis=1)
    x = (rng.random((nodes, 8)) < 0.3 + 0.4 * (np.arange(8) % classes == y[:, None])).astype(np.float32)
    return {"x": x, "edge_index": both, "y": y}


@pytest.fixture(scope="session")
def arrays() -> dict:
    return network()


@pytest.fixture(scope="session")
def graph(arrays) -> progap.Graph:
    return progap.Graph(**arrays, name="small")


@pytest.fixture(autouse=True)
def nothing_spent():
    """Each test counts its own budget."""
    from progap import _budget

    _budget._fits.clear()
