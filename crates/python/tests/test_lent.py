"""Features that cannot be written to are read where they lie; everything else is copied."""

import gc
import mmap
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import progap
from conftest import network
from test_processes import ended, forked

SEEDED = {"random_state": 3, "epochs": 2, "method": "progap-labels"}


def frozen(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def mapped(array: np.ndarray, folder, mode: str = "r") -> np.ndarray:
    np.save(folder / "x.npy", array)
    return np.load(folder / "x.npy", mmap_mode=mode)


def of_bytes(array: np.ndarray, before: int = 0) -> np.ndarray:
    content = bytes(before) + array.tobytes()
    return np.frombuffer(content, array.dtype, offset=before).reshape(array.shape)


def sent(array: np.ndarray) -> np.ndarray:
    """As Dask and others hand arrays to another process."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(array, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(content, buffers=[bytes(buffer) for buffer in buffers])


LENT = {
    "read-only": lambda x, folder: frozen(x),
    "a view of one that is": lambda x, folder: frozen(np.vstack([x, x]))[len(x) :],
    "a file": mapped,
    "rows of a file": lambda x, folder: mapped(np.vstack([x, x]), folder)[len(x) :],
    "bytes": lambda x, folder: of_bytes(x),
    "bytes that were sent": lambda x, folder: sent(x),
    "a view of bytes": lambda x, folder: np.frombuffer(memoryview(x.tobytes()), np.float32).reshape(x.shape),
}


def read_only_view(x: np.ndarray) -> np.ndarray:
    view = x.copy()[:]
    view.setflags(write=False)
    return view


COPIED = {
    "writable": lambda x, folder: x.copy(),
    "a read-only view of one that is writable": lambda x, folder: read_only_view(x),
    "a read-only view of writable bytes": lambda x, folder: np.frombuffer(
        memoryview(bytearray(x.tobytes())).toreadonly(), np.float32
    ).reshape(x.shape),
    "a file for writing": lambda x, folder: mapped(x, folder, "r+"),
    "a file with a copy of its own": lambda x, folder: mapped(x, folder, "c"),
    "double precision": lambda x, folder: frozen(x.astype(np.float64)),
    "half precision": lambda x, folder: frozen(x.astype(np.float16)),
    "the other order of bytes": lambda x, folder: frozen(x.astype(np.dtype(np.float32).newbyteorder())),
    "columns": lambda x, folder: mapped(np.asfortranarray(x), folder),
    "every other row": lambda x, folder: frozen(np.repeat(x, 2, axis=0))[::2],
    "between two words": lambda x, folder: of_bytes(x, 3),
}


@pytest.mark.parametrize("kind", LENT)
def test_what_cannot_be_written_to_is_read_where_it_lies(kind, arrays, graph, tmp_path):
    lent = progap.Graph(**{**arrays, "x": LENT[kind](arrays["x"], tmp_path)})
    assert lent._data.lent == 1 and graph._data.lent == 0
    assert lent.fingerprint() == graph.fingerprint()
    np.testing.assert_array_equal(lent.x, graph.x)


@pytest.mark.parametrize("kind", COPIED)
def test_everything_else_is_copied(kind, arrays, graph, tmp_path):
    copied = progap.Graph(**{**arrays, "x": COPIED[kind](arrays["x"], tmp_path)})
    assert copied._data.lent == 0
    assert copied.fingerprint() == graph.fingerprint()


def test_who_writes_to_what_was_copied_changes_nothing(arrays, graph):
    base = arrays["x"].copy()
    view = base[:]
    view.setflags(write=False)
    buffer = bytearray(base.tobytes())
    of_buffer = np.frombuffer(memoryview(buffer).toreadonly(), np.float32).reshape(base.shape)
    graphs = [progap.Graph(**{**arrays, "x": x}) for x in (view, of_buffer)]
    base[:] = 7
    buffer[:] = bytes(len(buffer))
    assert all(made.fingerprint() == graph.fingerprint() for made in graphs)


@pytest.mark.parametrize("level", ["none", "edge", "node"])
@pytest.mark.parametrize("unscaled", [False, True])
def test_the_bits_are_those_of_a_copy(level, unscaled, arrays, tmp_path):
    x = np.random.default_rng(1).normal(size=arrays["x"].shape).astype(np.float32)
    found = []
    for number, given in enumerate((x, mapped(x, tmp_path))):
        graph = progap.Graph(**{**arrays, "x": given}, unscaled=unscaled)
        assert graph._data.lent == number
        with pytest.warns(progap.NotPrivateWarning) if level != "none" else _nothing():
            model = progap.ProGAP(level=level, **SEEDED).fit(graph)
        release = model.save(tmp_path / f"{number}")
        np.testing.assert_array_equal(release.predict_proba(), model.predict_proba())
        graph.save(tmp_path / f"{number}.progap")
        found.append(
            (
                model.predict_proba(),
                pickle.loads(pickle.dumps(graph)).fingerprint(),
                (tmp_path / f"{number}.progap").read_bytes(),
            )
        )
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]


class _nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def test_sparse_rows_are_lent_too(arrays, graph):
    sparse = pytest.importorskip("scipy.sparse")
    x = arrays["x"] * np.linspace(0.5, 2, arrays["x"].size, dtype=np.float32).reshape(arrays["x"].shape)
    rows = sparse.csr_array(x)
    expected = progap.Graph(rows, arrays["edge_index"], arrays["y"])
    assert expected._data.lent == 0
    parts = (frozen(rows.data), frozen(rows.indices.astype(np.int32)), rows.indptr)
    lent = progap.Graph(sparse.csr_array(parts, shape=x.shape), arrays["edge_index"], arrays["y"])
    assert lent._data.lent == 2 and lent.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(lent.x, x)
    found = [progap.ProGAP(level="none", **SEEDED).fit(made).predict_proba() for made in (lent, expected)]
    np.testing.assert_array_equal(*found)
    for indices, said in (
        (np.full_like(rows.indices, 8), "8 is outside 0..8"),
        (np.full_like(rows.indices, -1), "-1 is outside 0..8"),
    ):
        wrong = sparse.csr_array(parts, shape=x.shape)
        wrong.indices = frozen(indices.astype(np.int32))
        wrong.has_canonical_format = True
        with pytest.raises(progap.DataError, match=said):
            progap.Graph(wrong, arrays["edge_index"], arrays["y"])


def test_bad_values_are_found_where_they_lie(arrays, tmp_path):
    x = arrays["x"].copy()
    x[7, 3] = np.inf
    assert np.isfinite(progap.Graph(**{**arrays, "x": mapped(x, tmp_path)}).x).all(), "clamped in a copy"
    with pytest.raises(progap.DataError, match="x has 299 rows"):
        progap.Graph(**{**arrays, "x": mapped(x[1:], tmp_path)})


def test_what_was_made_writable_again_is_refused(arrays):
    x = frozen(arrays["x"])
    graph = progap.Graph(**{**arrays, "x": x})
    other = graph.split(seed=1)
    model = progap.ProGAP(level="none", **SEEDED).fit(graph)
    x.setflags(write=True)
    for ask in (
        lambda: progap.ProGAP(level="none", **SEEDED).fit(graph),
        lambda: progap.ProGAP(level="none", **SEEDED).fit(other),
        lambda: other.x,
        graph.fingerprint,
        graph.check,
        model.predict,
        model.score,
    ):
        with pytest.raises(progap.DataError, match="x was made writable after the graph was made"):
            ask()
    x.setflags(write=False)
    assert model.predict().shape == (300,) and other.x.shape == (300, 8)


def test_a_fit_counts_whatever_became_of_its_features(arrays):
    x = frozen(arrays["x"])
    graph = progap.Graph(**{**arrays, "x": x})

    def stop(progress):
        x.setflags(write=True)
        return False

    with pytest.raises(progap.Stopped):
        progap.ProGAP(method="progap-labels", epochs=2, progress=stop).fit(graph)
    assert progap.spent(graph)["edge-undirected"]["fits"] == 1


def test_memory_that_is_lent_stays_where_it_is(arrays):
    x = frozen(arrays["x"])
    graph = progap.Graph(**{**arrays, "x": x})
    for check in (True, False):
        with pytest.raises(ValueError, match="cannot resize"):
            x.resize((1, 1), refcheck=check)
    del graph
    gc.collect()
    x.resize((1, 1), refcheck=False)
    assert x.shape == (1, 1)


def test_what_is_lent_lives_as_long_as_it_is_read(arrays):
    x = frozen(arrays["x"])
    alive = weakref.ref(x)
    graph = progap.Graph(**{**arrays, "x": x})
    del x
    gc.collect()
    model = progap.ProGAP(level="none", **SEEDED).fit(graph.split(seed=2))
    expected = model.predict_proba()
    del graph
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(model.predict_proba(), expected)
    del model
    gc.collect()
    assert alive() is None


def test_a_mapped_file_is_let_go_with_its_graph(arrays, tmp_path):
    np.save(tmp_path / "x.npy", arrays["x"])
    with open(tmp_path / "x.npy", "rb") as file:
        opened = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    x = np.frombuffer(opened, np.float32, offset=128).reshape(arrays["x"].shape)
    graph = progap.Graph(**{**arrays, "x": x})
    del x
    with pytest.raises(BufferError):
        opened.close()
    assert graph._data.lent == 1 and graph.x.shape == (300, 8)
    del graph
    gc.collect()
    opened.close()


def test_threads_make_use_and_drop_graphs_that_are_lent(tmp_path):
    arrays = network(seed=5)
    x = mapped(arrays.pop("x"), tmp_path)
    expected = progap.ProGAP(level="none", **SEEDED).fit(progap.Graph(np.array(x), **arrays)).predict_proba()
    wrong = []

    def use():
        for _ in range(4):
            found = progap.ProGAP(level="none", **SEEDED).fit(progap.Graph(x, **arrays)).predict_proba()
            if not (found == expected).all():
                wrong.append(found)

    threads = [threading.Thread(target=use) for _ in range(4)]
    [thread.start() for thread in threads]
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_reads_what_is_lent(arrays, tmp_path):
    graph = progap.Graph(**{**arrays, "x": mapped(arrays["x"], tmp_path)})
    expected = progap.ProGAP(level="none", **SEEDED).fit(graph).predict_proba()

    def same():
        nonlocal graph
        found = progap.ProGAP(level="none", **SEEDED).fit(graph).predict_proba()
        graph = None
        gc.collect()
        return (found == expected).all()

    assert ended(forked(same)) == 0
    np.testing.assert_array_equal(progap.ProGAP(level="none", **SEEDED).fit(graph).predict_proba(), expected)


#: Trains on features of 200 MB with room for half of that besides.
TIGHT = """
import resource, sys
from pathlib import Path
import numpy as np, progap

x = np.load(sys.argv[1], mmap_mode="r")
if sys.argv[2] == "in memory":
    x = np.array(x)
    x.setflags(write=False)
rng = np.random.default_rng(0)
y = np.full(len(x), -1)
y[:2000] = rng.integers(2, size=2000)
edges = rng.integers(len(x), size=(2, 5000))
progap.ProGAP(level="none").fit(progap.Graph(edge_index=[[0, 1], [1, 0]], y=[0, 1] * 9))
(used,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
room = 1024 * int(used.split()[1]) + x.nbytes // 2
resource.setrlimit(resource.RLIMIT_DATA, (room, room))
if sys.argv[2] == "copied":
    x = np.array(x)
graph = progap.Graph(x, edges, y, unscaled=True)
for level in ("none", "edge", "node"):
    model = progap.ProGAP(level=level, method="progap-labels", epochs=1).fit(graph)
print(model.predict([0, 1, 2]).shape)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_no_copy_of_200_megabytes(tmp_path):
    x = (np.random.default_rng(0).random((100_000, 512), np.float32) < 0.5).astype(np.float32)
    np.save(tmp_path / "x.npy", x)

    def run(how: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", TIGHT, str(tmp_path / "x.npy"), how], capture_output=True, text=True, timeout=600
        )

    for how in ("in a file", "in memory"):
        done = run(how)
        assert done.stdout.strip() == "(3,)", done.stderr
    assert "MemoryError" in run("copied").stderr


def test_edges_and_labels_between_two_words_are_copied(arrays, graph):
    """As views of bytes have them."""

    def shifted(array):
        array = np.ascontiguousarray(array, np.int64)
        memory = np.empty(array.nbytes + 3, np.uint8)
        view = memory[3:].view(np.int64).reshape(array.shape)
        view[...] = array
        assert not view.flags.aligned
        return view

    moved = {**arrays, "edge_index": shifted(arrays["edge_index"]), "y": shifted(arrays["y"])}
    assert progap.Graph(**moved).fingerprint() == graph.fingerprint()
