"""The other side of the .npz tests: archives made and read by NumPy and SciPy.

    python npz.py make FOLDER    writes small archives and expected.json, which says what they hold
    python npz.py show FILE      prints what NumPy finds in an archive of ours, as JSON
    python npz.py summary FILE   prints counts and sums of a large archive, as JSON

`make` gives the same content every time; the archives' bytes depend on the version of zlib.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

NODES, CLASSES = 7, 3


def graph():
    """A directed graph with a self-loop and an isolated node (6)."""
    return np.array([[0, 1, 2, 3, 4, 5, 5, 0], [1, 0, 3, 2, 4, 0, 1, 5]])


def features():
    x = np.zeros((NODES, 5), dtype=np.float32)
    x[0, 1], x[1, 4], x[2, 0], x[2, 3], x[5, 2] = 1.5, -2.25, 0.1, 3e-5, 65504.0
    return x


def labels():
    return np.array([0, 1, 2, 1, 0, 2, 1])


def describe(edges, x, y, **more):
    pairs = sorted(zip(*(np.asarray(e).tolist() for e in edges)))
    return {"edges": pairs, "x": np.asarray(x, dtype=np.float32).tolist(), "y": np.asarray(y).tolist(), **more}


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    edges, x, y = graph(), features(), labels()
    expected = {}
    train, val = np.arange(NODES) < 3, np.arange(NODES) == 3
    test = np.arange(NODES) > 4

    # Edges as people make them from a list of pairs, which leaves them in Fortran order; a text for each name.
    pairs = np.ascontiguousarray(edges.T).T
    assert pairs.flags.f_contiguous and not pairs.flags.c_contiguous
    names = np.array(["plain", "naïve", "日本"])
    ids = np.array([f"node-{i}" for i in range(NODES)])
    np.savez(folder / "dense.npz", x=x.astype(np.float64), edge_index=pairs, y=y, train_mask=train, val_mask=val,
             test_mask=test, class_names=names, node_ids=ids, feature_names=np.array(list("abcde")).astype("S1"))
    expected["dense"] = describe(edges, x, y, train=[0, 1, 2], val=[3], test=[5, 6], class_names=names.tolist(),
                                 node_ids=ids.tolist(), feature_names=list("abcde"))

    # Sparse rows, deflated; labels in a column and with gaps; integer ids; masks of numbers.
    adj = sp.csr_matrix((np.ones(edges.shape[1]), edges), shape=(NODES, NODES))
    rows = sp.csr_matrix(x)
    np.savez_compressed(folder / "sparse.npz", adj_indptr=adj.indptr, adj_indices=adj.indices, adj_data=adj.data,
                        adj_shape=adj.shape, x_indptr=rows.indptr, x_indices=rows.indices, x_data=rows.data,
                        x_shape=rows.shape, y=(y * 10 + 5).astype(np.uint8)[:, None],
                        train_mask=train.astype(np.uint8), node_ids=np.arange(NODES) - 3)
    expected["sparse"] = describe(edges, x, y, train=[0, 1, 2], val=[], test=[], class_names=["5", "15", "25"],
                                  node_ids=[str(i - 3) for i in range(NODES)])

    # The other order of bytes, the other order of rows, decimal labels, entries of 0 that are no edges.
    entries = np.ones(edges.shape[1])
    entries[1] = 0
    order = np.lexsort(edges[::-1])
    swapped = edges[:, order]
    indptr = np.searchsorted(swapped[0], np.arange(NODES + 1))
    np.savez(folder / "big_endian.npz", x=np.asfortranarray(x).astype(">f4", order="K"), y=y.astype(">f8"),
             adj_indptr=indptr.astype(">i8"), adj_indices=swapped[1].astype(">u2"), adj_data=entries.astype(">f2"),
             undirected=np.array(False))
    expected["big_endian"] = describe(np.delete(swapped, 1, axis=1), x, y)

    # Small numbers and signs of many types, each row of x in its own archive of one.
    for name in ["int8", "uint8", "int16", "uint32", "uint64", "float16", "bool"]:
        column = np.array([0, 1, 1, 0, 1, 0, 1]).astype(name)[:, None]
        np.savez(folder / f"{name}.npz", x=column, y=y, edge_index=edges.astype("int16"))
        expected[name] = describe(edges, column.astype(np.float32), y)

    np.savez(folder / "pickled.npz", x=x, y=np.array([None] * NODES, dtype=object), edge_index=edges)

    # Sparse matrices as Python objects, as many files of graph networks hold them.
    links = sp.csr_matrix((np.ones(4), ([0, 1, 2, 4], [1, 2, 3, 0])), shape=(5, 5))
    words = sp.csr_matrix((np.array([1, 1, 2.5, 1], dtype=np.float32), ([0, 1, 1, 3], [0, 1, 2, 2])), shape=(5, 3))
    np.savez(folder / "graphdata.npz", adj_matrix=as_object(links), node_attr=as_object(words),
             node_label=np.array([0, 1, 0, 1, 1], dtype=np.int32), metadata=as_object({"class_names": ["a", "b"]}))

    for layout in ["csr", "csc", "coo", "bsr", "dia"]:
        matrix = sp.coo_matrix((np.arange(edges.shape[1]) + 1, edges), shape=(NODES, NODES)).asformat(layout)
        sp.save_npz(folder / f"scipy_{layout}.npz", matrix, compressed=layout != "csc")
    expected["scipy"] = describe(edges, x, y)

    expected["reddit"] = make_reddit(folder / "reddit")
    expected["ogbn"] = make_ogbn(folder / "ogbn" / "raw")
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")


def as_object(thing):
    """An array of one Python object."""
    array = np.empty((), dtype=object)
    array[()] = thing
    return array


def raw_graph(rng, nodes, edges):
    """Labels of which the last class is rare, and edges with self-loops and nodes that lose all neighbours."""
    y = rng.choice(4, size=nodes, p=[0.4, 0.3, 0.25, 0.05])
    loops = np.array([[0, 7], [0, 7]])
    pairs = np.unique(np.concatenate([rng.integers(0, nodes, size=(2, edges)), loops], axis=1), axis=1)
    return y, pairs


def published(edges, y, min_count):
    """The recipe of the published experiments: frequent classes, no self-loops, no isolated nodes."""
    kept = np.bincount(y)[y] >= min_count
    edges = edges[:, kept[edges[0]] & kept[edges[1]] & (edges[0] != edges[1])]
    nodes = np.unique(edges)
    numbers = {int(node): at for at, node in enumerate(nodes)}
    classes, renumbered = np.unique(y[nodes], return_inverse=True)
    pairs = sorted((numbers[int(a)], numbers[int(b)]) for a, b in edges.T)
    return {"min_count": min_count, "nodes": nodes.tolist(), "edges": pairs, "y": renumbered.tolist(),
            "class_names": [str(c) for c in classes]}


def make_reddit(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    y, edges = raw_graph(rng, 60, 70)
    edges = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    x = rng.normal(size=(60, 4))
    ids = rng.permutation(60) + 1000
    np.savez(folder / "reddit_data.npz", feature=x, label=y, node_ids=ids, node_types=rng.integers(1, 4, 60))
    sp.save_npz(folder / "reddit_graph.npz", sp.coo_matrix((np.ones(edges.shape[1]), edges), shape=(60, 60)))
    raw = describe(edges, x, y, node_ids=[str(i) for i in ids])
    return {"raw": raw, "prepared": published(edges, y, 10)}


def make_ogbn(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2)
    y, edges = raw_graph(rng, 80, 90)
    x = (rng.normal(size=(80, 5)) * 10.0 ** rng.integers(-8, 3, size=(80, 5))).astype(np.float32)

    def table(name, rows):
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))

    table("num-node-list", [[80]])
    table("num-edge-list", [[edges.shape[1]]])
    table("edge", edges.T.tolist())
    table("node-label", y[:, None].tolist())
    table("node-feat", [[repr(float(str(v))) for v in row] for row in x])
    both = np.concatenate([edges, edges[::-1]], axis=1)
    return {"raw": describe(both, x, y), "prepared": published(both, y, 10)}


def load(file):
    a = np.load(file, allow_pickle=False)
    y = a["y"]
    adj = sp.csr_matrix((np.ones(len(a["adj_indices"])), a["adj_indices"], a["adj_indptr"]), shape=(len(y), len(y)))
    adj.check_format(full_check=True)
    if "x" in a:
        x = a["x"]
    else:
        x = sp.csr_matrix((a["x_data"], a["x_indices"], a["x_indptr"]), shape=tuple(a["x_shape"]))
        x.check_format(full_check=True)
    return a, adj, x, y


def show(file):
    a, adj, x, y = load(file)
    sources = np.repeat(np.arange(len(y)), np.diff(a["adj_indptr"]))
    more = {k: np.flatnonzero(a[f"{k}_mask"]).tolist() for k in ["train", "val", "test"] if f"{k}_mask" in a}
    more |= {k: a[k].tolist() for k in ["class_names", "feature_names", "node_ids"] if k in a}
    dense = x.toarray() if sp.issparse(x) else x
    # Bits, so that no printing of decimals stands between the two sides.
    bits = np.ascontiguousarray(dense, dtype=np.float32).view(np.uint32).tolist()
    print(json.dumps({**describe((sources, a["adj_indices"]), dense, y, **more), "x_bits": bits}))


def summary(file):
    a, adj, x, y = load(file)
    sources = np.repeat(np.arange(len(y), dtype=np.int64), np.diff(a["adj_indptr"]))
    print(json.dumps({
        "nodes": len(y), "edges": int(adj.nnz), "columns": int(x.shape[1]), "nonzeros": int(x.count_nonzero()),
        "x_sum": float(x.sum(dtype=np.float64)), "class_counts": np.bincount(y).tolist(),
        "edge_sum": int((sources * a["adj_indices"].astype(np.int64)).sum()),
        "undirected": bool((adj != adj.T).nnz == 0),
    }))


if __name__ == "__main__":
    {"make": make, "show": show, "summary": summary}[sys.argv[1]](Path(sys.argv[2]))
