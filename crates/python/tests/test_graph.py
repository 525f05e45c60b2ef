"""Data in: every library's arrays become the same graph, and what is wrong with them is said in one sentence."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import progap


def same(one: progap.Graph, other: progap.Graph) -> bool:
    return one.fingerprint() == other.fingerprint()


def test_arrays_come_back_as_they_went_in(arrays, graph):
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (
        300,
        arrays["edge_index"].shape[1],
        8,
        3,
    )
    np.testing.assert_array_equal(graph.x, arrays["x"])
    np.testing.assert_array_equal(graph.y, arrays["y"])
    order = np.lexsort((arrays["edge_index"][0], arrays["edge_index"][1]))
    np.testing.assert_array_equal(graph.edge_index, arrays["edge_index"][:, order])
    assert graph.undirected
    assert graph.train_mask.sum() == 225 and graph.val_mask.sum() == 30 and graph.test_mask.sum() == 45


def test_layout_and_type_of_arrays_make_no_difference(arrays, graph):
    x, e, y = arrays["x"], arrays["edge_index"], arrays["y"]

    def read_only(array):
        copy = array.copy()
        copy.setflags(write=False)
        return copy

    for changed in (
        {"x": np.asfortranarray(x)},
        {"x": x.astype(np.float64)},
        {"x": x.astype(np.int8)},
        {"x": x.astype(bool)},
        {"x": x.astype(np.float16)},
        {"x": read_only(x)},
        {"x": np.repeat(x, 2, axis=1)[:, ::2]},
        {"x": np.flip(np.flip(x, 0).copy(), 0)},
        {"x": x.tolist()},
        {"edge_index": e.astype(np.int32)},
        {"edge_index": e.astype(np.uint16)},
        {"edge_index": e.astype(np.float64)},
        {"edge_index": np.asfortranarray(e)},
        {"edge_index": read_only(e)},
        {"edge_index": e.T},
        {"edge_index": e[:, ::-1]},
        {"edge_index": (e[0].tolist(), e[1].tolist())},
        {"y": y.astype(np.float32)},
        {"y": y.astype(np.uint8)},
        {"y": read_only(y)},
        {"y": y.tolist()},
        {"y": y.reshape(-1, 1)},
    ):
        assert same(progap.Graph(**{**arrays, **changed}), graph), changed


def test_a_graph_keeps_what_it_was_given(arrays, graph):
    x = arrays["x"].copy()
    taken = progap.Graph(x, arrays["edge_index"], arrays["y"])
    x[:] = 9
    assert same(taken, graph)


def test_scipy_matrices(arrays, graph):
    sparse = pytest.importorskip("scipy.sparse")
    e = arrays["edge_index"]
    adjacency = sparse.coo_array((np.ones(e.shape[1]), (e[0], e[1])), shape=(300, 300))
    for matrix in (adjacency, adjacency.tocsr(), adjacency.tocsc(), adjacency.toarray()):
        assert same(progap.Graph(arrays["x"], adjacency=matrix, y=arrays["y"]), graph)
    assert same(progap.Graph(arrays["x"], adjacency.tocsr(), arrays["y"]), graph)
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.lil_matrix):
        np.testing.assert_array_equal(progap.Graph(kind(arrays["x"]), e, arrays["y"]).x, arrays["x"])
    with pytest.raises(progap.DataError, match="square"):
        progap.Graph(adjacency=sparse.csr_array((3, 4)), y=[0, 1, 0])


def test_frames_of_pandas_and_polars_as_arrays(arrays, graph):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = [f"f{k}" for k in range(8)]
    for library in (pd, pl):
        x = library.DataFrame({name: arrays["x"][:, k] for k, name in enumerate(names)})
        edges = library.DataFrame({"source": arrays["edge_index"][0], "target": arrays["edge_index"][1]})
        found = progap.Graph(x, edges, library.Series(arrays["y"]))
        assert same(found, graph) and found.feature_names == names


def test_labels_of_text_numbers_and_gaps():
    edges = [[0, 1], [1, 2]]
    texts = progap.Graph(edge_index=edges, y=["b", "a", None], train_mask=[0, 1])
    assert texts.classes.tolist() == ["a", "b"] and texts.y.tolist() == ["b", "a", None]
    gaps = progap.Graph(edge_index=edges, y=[7.0, np.nan, 3.0], train_mask=[0, 2])
    assert gaps.classes.tolist() == [3, 7] and gaps.y.tolist() == [7, None, 3]
    minus = progap.Graph(edge_index=edges, y=[1, 0, -1], train_mask=[0, 1])
    assert minus.y.tolist() == [1, 0, None] and minus.nodes.tolist() == [0, 1]
    named = progap.Graph(edge_index=edges, y=[1, 0, 1], class_names=["no", "yes", "maybe"], train_mask=[0, 1])
    assert named.num_classes == 3 and named.y.tolist() == ["yes", "no", "yes"]
    assert progap.Graph(edge_index=edges, y=[True, False, True]).classes.tolist() == [0, 1]
    assert progap.Graph(edge_index=edges, y=[True, False, None]).classes.tolist() == [0, 1]
    masked = progap.Graph(
        edge_index=edges, y=np.ma.masked_array([1, 0, 9], mask=[False, False, True]), train_mask=[0, 1]
    )
    assert masked.y.tolist() == [1, 0, None]


def test_masks_and_lists_of_nodes():
    g = progap.Graph(
        edge_index=[[0], [1]],
        y=[0, 1, 0, 1],
        train_mask=[0, 1],
        val_mask=[2],
        test_mask=np.array([False, False, False, True]),
    )
    assert (g.train_mask.tolist(), g.val_mask.tolist(), g.test_mask.tolist()) == (
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    )
    again = g.with_masks([3, 2], test_mask=[0])
    assert again.train_mask.tolist() == [False, False, True, True] and again.fingerprint() == g.fingerprint()


def test_torch_geometric_in_name_only(arrays, graph):
    """Anything with the attributes of a Data will do; test_torch.py has torch itself."""
    masks = {"train_mask": np.stack([graph.train_mask, graph.val_mask], 1), "val_mask": graph.val_mask}
    data = SimpleNamespace(**arrays, **masks)
    found = progap.from_pyg(data, name="pyg")
    assert same(found, graph) and found.name == "pyg"
    np.testing.assert_array_equal(found.train_mask, graph.train_mask)
    with pytest.raises(progap.DataError, match="no edge_index"):
        progap.from_pyg(SimpleNamespace(y=[0]))


def test_networkx(arrays, graph):
    nx = pytest.importorskip("networkx")
    G = nx.Graph()
    for node, (row, label) in enumerate(zip(arrays["x"], arrays["y"])):
        G.add_node(node, dept=f"d{label}", **{f"f{k}": int(value) for k, value in enumerate(row)})
    G.add_edges_from(arrays["edge_index"].T.tolist())
    found = progap.from_networkx(G, label="dept")
    np.testing.assert_array_equal(found.edge_index, graph.edge_index)
    np.testing.assert_array_equal(found.x, graph.x)
    assert found.classes.tolist() == ["d0", "d1", "d2"]
    with pytest.raises(progap.DataError, match="no node has an attribute 'label' .found: dept, f0"):
        progap.from_networkx(G)
    assert progap.from_networkx(G, label="dept", features=["f3", "f1"]).feature_names == ["f3", "f1"]
    with pytest.raises(progap.DataError, match="'f9' .*features="):
        progap.from_networkx(G, label="dept", features=["f9"])
    with pytest.raises(TypeError, match="lables"):
        progap.from_networkx(G, label="dept", lables="dept")


def test_attributes_of_networkx_by_any_name():
    nx = pytest.importorskip("networkx")
    G = nx.DiGraph([(0, 1), (1, 2)])
    nx.set_node_attributes(G, {0: "a", 1: "b", 2: "a"}, "dept")
    for name in ("id", "label", 5):
        nx.set_node_attributes(G, {0: 1, 1: 0, 2: 1}, name)
    assert progap.from_networkx(G, label="dept").feature_names == ["5"]
    named = progap.from_networkx(G, label="dept", features=["id", "label", 5])
    assert named.feature_names == ["id", "label", "5"] and named.x.tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    assert named.node_ids.tolist() == [0, 1, 2] and named.classes.tolist() == ["a", "b"]
    G.edges[0, 1]["strength"] = 0.5
    weighted = progap.from_networkx(G, label="dept", weights="strength", weight_bound=1)
    same_edges = progap.Graph(
        weighted.x, [[0, 1], [1, 2]], ["a", "b", "a"], edge_weight=[0.5, 1.0], weight_bound=1, feature_names=["5"]
    )
    assert same(weighted, same_edges) and not same(weighted, progap.from_networkx(G, label="dept"))
    with pytest.raises(progap.DataError, match="no edge has an attribute 'weight'"):
        progap.from_networkx(G, label="dept", weights="weight", weight_bound=1)
    nx.set_node_attributes(G, {0: np.ones(2), 1: np.ones(2), 2: np.ones(2)}, "vector")
    with pytest.raises(progap.DataError, match="'vector' of nodes holds arrays"):
        progap.from_networkx(G, label="dept")


def test_tables_of_polars_that_are_lazy_or_nested():
    pl = pytest.importorskip("polars")
    nodes = pl.DataFrame({"id": [1, 2, 3], "label": ["x", "y", "x"], "age": [30, 40, 50]})
    edges = pl.DataFrame({"source": [1, 2], "target": [2, 3]})
    assert same(progap.from_polars(nodes.lazy(), edges.lazy()), progap.from_polars(nodes, edges))
    with pytest.raises(progap.DataError, match="the column 'tags' of nodes holds List"):
        progap.from_polars(nodes.with_columns(tags=pl.lit([1, 2])), edges)
    assert progap.from_polars(nodes, edges, drop="age").num_features == 0
    assert progap.from_polars(nodes, edges, unknown="NA").num_classes == 2


def test_tables_are_read_as_files_are(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    nodes = pd.DataFrame(
        {
            "who": ["ann", "bob", "cid", "dan"],
            "ill": ["yes", "no", None, "no"],
            "age": [30.5, None, 25, 60],
            "town": ["Ulm", "Bonn", "Ulm", None],
            "smokes": [True, False, True, True],
            "since": pd.to_datetime(["2020-01-01", "2021-05-06", "2020-02-29", "2019-12-31"]),
        }
    )
    edges = pd.DataFrame({"a": ["ann", "bob"], "b": ["bob", "cid"]})
    names = {"id": "who", "label": "ill"}
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    loaded = progap.load(tmp_path, **names, source_column="a", target_column="b")
    for table in (nodes, pl.from_pandas(nodes)):
        found = progap.from_pandas(
            table, edges if table is nodes else pl.from_pandas(edges), **names, source="a", target="b"
        )
        assert found.feature_names == loaded.feature_names
        assert same(found, loaded)
    assert loaded.node_ids.tolist() == ["ann", "bob", "cid", "dan"]
    dropped = progap.from_pandas(nodes, edges, **names, source="a", target="b", drop=["since"], categorical=["smokes"])
    assert "smokes=True" in dropped.feature_names or "smokes=true" in dropped.feature_names
    with pytest.raises(progap.DataError, match='table of nodes: node 1: it has the id "ann" of node 0'):
        progap.from_pandas(nodes.assign(who="ann"), edges, **names, source="a", target="b")
    with pytest.raises(progap.DataError, match='table of nodes: node "bob", value "age": "old" is not a number'):
        progap.from_pandas(nodes.assign(age=[30, "old", 25, 60]), edges, **names, source="a", target="b")
    with pytest.raises(progap.DataError, match=r'table of edges: "b"\[1\]: the node "eve" is not in the node table'):
        progap.from_pandas(nodes, edges.assign(b=["bob", "eve"]), **names, source="a", target="b")
    with pytest.raises(progap.DataError, match="no id column"):
        progap.from_pandas(nodes, edges)


def test_encodings_and_headers_of_other_peoples_files(tmp_path):
    (tmp_path / "nodes.csv").write_bytes("id;label;town\n1;x;Köln\n2;y;Bonn\n".encode("latin-1"))
    (tmp_path / "edges.csv").write_text("source;target\n1;2\n")
    with pytest.raises(progap.DataError, match="looks like latin-1"):
        progap.load(tmp_path)
    assert progap.load(tmp_path, encoding="latin-1").feature_names == ["town=Bonn", "town=Köln"]
    with pytest.raises(ValueError, match="utf-8, latin-1 or utf-16"):
        progap.load(tmp_path, encoding="ebcdic")
    (tmp_path / "list.txt").write_text("left right\nann bob\nbob cat\n")
    (tmp_path / "labels.csv").write_text("ann,x\nbob,y\ncat,x\n")
    lists = {"labels": tmp_path / "labels.csv"}
    with pytest.raises(progap.DataError, match="may be a header or data"):
        progap.load(tmp_path / "list.txt", **lists)
    sizes = [progap.load(tmp_path / "list.txt", header=header, **lists).num_nodes for header in (True, False)]
    assert sizes == [3, 5]
    (tmp_path / "data.pt").write_bytes(b"PK")
    with pytest.raises(progap.DataError, match="from_pyg"):
        progap.load(tmp_path / "data.pt")


def test_nan_is_a_missing_value_as_in_files(tmp_path):
    x = np.array([[1.5, 0], [np.nan, 1], [2.5, np.nan], [7, 1]])
    arrays = {"x": x, "edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([0, 1, 0, 1])}
    np.savez(tmp_path / "g.npz", **arrays)
    loaded = progap.load(tmp_path / "g.npz")
    for given in (x, x.astype(np.float32), np.ma.masked_invalid(x)):
        found = progap.Graph(**{**arrays, "x": given})
        assert same(found, loaded) and found.fingerprint() == loaded.fingerprint()
        np.testing.assert_array_equal(found.x[:, 2:], np.isnan(x))
    fixed = x.astype(np.float32)
    fixed.setflags(write=False)
    assert progap.Graph(**{**arrays, "x": fixed})._data.lent == 0
    pd = pytest.importorskip("pandas")
    named = progap.Graph(**{**arrays, "x": pd.DataFrame(x, columns=["pay", "smokes"])})
    assert named.feature_names == ["pay", "smokes", "pay missing", "smokes missing"]
    for level in ("none", "edge", "node"):
        assert progap.ProGAP(level=level, method="mlp", epochs=1).fit(named).predict().shape == (4,)


def test_every_format_of_the_command(tmp_path, arrays, graph):
    np.savez(tmp_path / "g.npz", **arrays)
    assert same(progap.load(tmp_path / "g.npz"), graph)
    graph.save(tmp_path / "g.progap")
    again = progap.load(tmp_path / "g.progap")
    assert same(again, graph)
    np.testing.assert_array_equal(again.train_mask, graph.train_mask)
    with pytest.raises(progap.DataError, match="nowhere.csv: .*check the spelling"):
        progap.load(tmp_path / "nowhere.csv")
    assert progap.load("demo").num_nodes == 20_000


def test_copies_and_pickles(graph):
    assert copy.copy(graph) is graph and copy.deepcopy(graph) is graph
    again = pickle.loads(pickle.dumps(graph))
    assert same(again, graph)
    np.testing.assert_array_equal(again.train_mask, graph.train_mask)
    assert again.classes.tolist() == graph.classes.tolist()


def test_it_shows_itself(graph):
    assert repr(graph).startswith("Graph('small', 300 nodes")
    assert "225 train" in graph._repr_html_()
    assert "&lt;b&gt;" in progap.Graph(edge_index=[[0], [1]], y=[0, 1], name="<b>")._repr_html_()


GOOD = {"x": np.ones((4, 2)), "edge_index": [[0, 1], [1, 2]], "y": [0, 1, 0, 1]}


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"x": np.ones((3, 2))}, "x has 3 rows and y has 4"),
        ({"x": np.ones(4)}, r"x has the shape \(4,\)"),
        ({"x": np.ones((4, 2, 1))}, r"x has the shape \(4, 2, 1\)"),
        ({"x": [["a", "b"]] * 4}, "give numbers"),
        ({"x": [[1, 2], [1]] * 2}, "no array|give numbers"),
        ({"x": np.ones((4, 2)) * 1j}, "complex"),
        ({"edge_index": [[0, 1], [1, 4]]}, r"edge_index\[1\].*4 is outside 0..4"),
        ({"edge_index": [[0, -1], [1, 2]]}, r"edge_index\[0\].*-1 is outside 0..4"),
        ({"edge_index": [[0, 2**40], [1, 2]]}, "outside 0..4"),
        ({"edge_index": [[0.5, 1], [1, 2]]}, "0.5, which is no whole number"),
        ({"edge_index": [[np.nan, 1], [1, 2]]}, "nan, which is no whole number"),
        ({"edge_index": np.zeros((3, 5), int)}, "2 x E"),
        ({"edge_index": np.zeros(4, int)}, "2 x E"),
        ({"edge_index": ([0, 1], [1])}, "same length"),
        ({"edge_index": [["a", "b"], ["b", "c"]]}, "nodes are counted from 0"),
        ({"edge_index": np.array([[2**64 - 1], [0]], np.uint64)}, "18446744073709551615"),
        ({"y": None}, "no labels"),
        ({"y": []}, "x has 4 rows and y has 0"),
        ({"y": [0, 1, 0.5, 1]}, "0.5: labels are classes"),
        ({"y": [0, 1, np.inf, 1]}, "inf: labels are classes"),
        ({"y": [0, 1, -2, 1]}, "node 2: the label -2"),
        ({"y": [None] * 4}, "no classes"),
        ({"y": [-1] * 4}, "no classes"),
        ({"y": np.ones((4, 2))}, r"y has the shape \(4, 2\)"),
        ({"y": np.array(["2020-01-01"] * 4, "datetime64[D]")}, "datetime64"),
        ({"class_names": ["only"]}, "outside 0..1"),
        ({"train_mask": [True] * 3}, "length 3, expected 4"),
        ({"train_mask": [9]}, "9 is outside 0..4"),
        ({"train_mask": [-1]}, "-1 is outside 0..4"),
        ({"train_mask": [0, 1], "val_mask": [1]}, "node 1: the node is in more than one mask"),
        ({"val_mask": [1]}, "without train_mask"),
        ({"train_mask": np.ones((4, 2), bool)}, "one truth value for each node"),
        ({"node_ids": ["a", "b"]}, "node ids"),
        ({"node_ids": ["a", "b", "a", "c"]}, "'?\"?a\"?'? is that of node 0"),
        ({"feature_names": ["a"]}, "feature names"),
        ({"num_nodes": 5}, "num_nodes has 5"),
        ({"node_ids": [0, 1, 2]}, r"node_ids has the shape \(3,\) and there are 4 nodes"),
        ({"node_ids": np.arange(4, dtype=np.uint64) + 2**63}, "too large for a number of a node"),
        ({"y": np.array([1, 0, 1, 2**64 - 1], np.uint64)}, "18446744073709551615, which is too large for a label"),
        ({"class_names": ["a", "a"]}, "the class name 'a' stands twice"),
        ({"edge_index": None, "adjacency": np.full((4, 4), "a")}, "the adjacency matrix holds <U1; give numbers"),
        ({"seed": -1}, "the seed -1 is outside"),
        ({"edge_weight": [1.0]}, r"edge_weight has the shape \(1,\) and there are 2 edges"),
        ({"edge_weight": [0.5, 1.5]}, "weights need a public maximum"),
        ({"edge_weight": [0.5, 1.5], "weight_bound": 0}, "a number above 0"),
        ({"edge_weight": ["a", "b"]}, "give numbers"),
    ],
)
def test_bad_input_is_one_sentence(wrong, said):
    with pytest.raises(progap.DataError, match=said):
        progap.Graph(**{**GOOD, **wrong})


def test_weights_of_edges(arrays, graph, tmp_path):
    weights = np.random.default_rng(0).random(arrays["edge_index"].shape[1]).astype(np.float32)
    weighted = progap.Graph(**arrays, edge_weight=weights, weight_bound=1)
    np.savez(tmp_path / "g.npz", **arrays, edge_weight=weights)
    assert same(weighted, progap.load(tmp_path / "g.npz", weights="weight", weight_bound=1)) and not same(
        weighted, graph
    )
    assert same(progap.load(tmp_path / "g.npz"), graph)
    assert progap.ProGAP(method="progap-labels", epochs=2).fit(weighted).guarantee_.private


def test_empty_graphs():
    with pytest.raises(progap.DataError, match="no nodes|no classes"):
        progap.Graph(x=np.zeros((0, 3)), edge_index=np.zeros((2, 0), int), y=[])
    with pytest.raises(progap.DataError, match="no nodes|no classes"):
        progap.Graph(y=[])
    lonely = progap.Graph(y=[0, 1, 0, 1], train_mask=[0, 1, 2])
    assert (lonely.num_edges, lonely.num_features) == (0, 0)


def test_columns_and_unknown_labels_are_declared():
    pd = pytest.importorskip("pandas")
    people = pd.DataFrame(
        {"id": list("abcd"), "label": [-1, 1, 1, -1], "age": [30, 40, 200, 25], "town": ["Ulm", "Bonn", "Ulm", "Ulm"]}
    )
    calls = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    with pytest.raises(progap.DataError, match="-1 may be a class"):
        progap.from_pandas(people, calls)
    declared = {"age": {"bounds": [0, 120]}, "town": {"categories": ["Bonn", "Kiel", "Ulm"]}}
    g = progap.from_pandas(people, calls, unknown=["NA"], columns=declared)
    assert len(g.classes) == 2
    assert g.feature_names == ["age", "town=Bonn", "town=Kiel", "town=Ulm"]
    assert len(progap.from_pandas(people, calls, unknown=["-1"]).classes) == 1
    with pytest.raises(progap.SettingsError, match="columns"):
        progap.from_pandas(people, calls, unknown=["NA"], columns={"age": {"limits": [0, 1]}})
