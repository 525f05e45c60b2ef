"""torch and PyTorch Geometric themselves. They are large: `check` keeps them in a cache, and says so where it leaves
these tests out."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

import progap
from conftest import FAST

if os.environ.get("PROGAP_TORCH") != "here":
    # Where they must be there, they are imported, and not looked for.
    pytest.importorskip("torch", reason="torch is not installed here")
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed here")

import torch  # noqa: E402
from torch_geometric import transforms  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.datasets import FakeDataset  # noqa: E402
from torch_geometric.utils import to_undirected  # noqa: E402


@pytest.fixture
def data(arrays) -> Data:
    return Data(**{name: torch.tensor(array) for name, array in arrays.items()})


def test_a_file_of_pytorch_is_read_by_the_line_that_its_refusal_names(data, graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(data, "data.pt")
    with pytest.raises(progap.DataError) as refused:
        progap.load("data.pt")
    line = str(refused.value).split("only Python opens it: ")[1].split("; convert it")[0]
    exec(line, {})
    assert progap.load("graph.progap").fingerprint() == graph.fingerprint()


def test_a_data_of_pytorch_geometric(data, graph):
    found = progap.from_pyg(data, name="small")
    assert found.fingerprint() == graph.fingerprint() and found.name == "small"
    np.testing.assert_array_equal(found.train_mask, graph.train_mask)


def test_masks_that_pytorch_geometric_draws(data):
    split = transforms.RandomNodeSplit(num_val=0.1, num_test=0.2)(data)
    found = progap.from_pyg(split)
    for part in ("train_mask", "val_mask", "test_mask"):
        np.testing.assert_array_equal(getattr(found, part), split[part].numpy())
    several = transforms.RandomNodeSplit("random", num_splits=3)(data.clone())
    np.testing.assert_array_equal(progap.from_pyg(several).train_mask, several.train_mask[:, 0].numpy())


def test_adjacencies_that_pytorch_geometric_stores(data, graph):
    stored = transforms.ToSparseTensor(layout=torch.sparse_csr)(data.clone())
    assert getattr(stored, "edge_index", None) is None
    assert progap.from_pyg(stored).fingerprint() == graph.fingerprint()
    one_way = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0], [1, 2]]), y=torch.tensor([0, 1, 0]))
    stored = transforms.ToSparseTensor(layout=torch.sparse_csr)(one_way.clone())
    np.testing.assert_array_equal(progap.from_pyg(stored).edge_index, progap.from_pyg(one_way).edge_index)


def test_layouts_and_types_of_tensors_make_no_difference(data, graph):
    x, e, y = data.x, data.edge_index, data.y
    for changed in (
        {"x": x.double()},
        {"x": x.half()},
        {"x": x.bfloat16()},
        {"x": x.bool()},
        {"x": x.clone().requires_grad_()},
        {"x": x.to_sparse().to_dense().t().contiguous().t()},
        {"x": torch.repeat_interleave(x, 2, 1)[:, ::2]},
        {"x": torch.complex(torch.zeros_like(x), -x).conj().imag},
        {"edge_index": e.int()},
        {"edge_index": e.flip(1)},
        {"edge_index": (e[0], e[1])},
        {"y": y.int()},
        {"y": y.float()},
        {"y": y.reshape(-1, 1)},
    ):
        given = {"x": x, "edge_index": e, "y": y, **changed}
        assert progap.Graph(**given).fingerprint() == graph.fingerprint(), changed
    for sparse in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc()):
        np.testing.assert_array_equal(progap.Graph(sparse, e, y).x, graph.x)
    matrix = torch.sparse_coo_tensor(e, torch.ones(e.shape[1]), (300, 300))
    for adjacency in (matrix, matrix.to_sparse_csr(), matrix.to_dense()):
        assert progap.Graph(x, adjacency=adjacency, y=y).fingerprint() == graph.fingerprint()
    assert progap.Graph(x, matrix, y).fingerprint() == graph.fingerprint()


def test_missing_labels(data):
    y = data.y.clone()
    y[::7] = -1
    found = progap.from_pyg(Data(x=data.x, edge_index=data.edge_index, y=y))
    assert len(found.nodes) == int((y >= 0).sum())


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"x": torch.ones(300, 2, dtype=torch.complex64)}, "x holds complex64"),
        ({"x": torch.ones(300, 2, device="meta")}, "tensor that NumPy cannot read"),
        ({"x": torch.quantize_per_tensor(torch.ones(300, 2), 1.0, 0, torch.qint8)}, "tensor that NumPy cannot read"),
        ({"edge_index": torch.tensor([[0], [300]])}, "300 is outside 0..300"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "-1 is outside 0..300"),
        ({"edge_index": torch.zeros(3, 4, dtype=torch.long)}, "2 x E"),
        ({"edge_index": torch.zeros(3, 4).to_sparse()}, "square"),
        ({"y": torch.rand(300)}, "labels are classes"),
        ({"y": torch.zeros(299, dtype=torch.long)}, "x has 300 rows and y has 299"),
    ],
)
def test_bad_tensors_are_one_sentence(data, wrong, said):
    with pytest.raises(progap.DataError, match=said):
        progap.Graph(**{"x": data.x, "edge_index": data.edge_index, "y": data.y, **wrong})


def test_data_that_is_no_graph_of_one_kind():
    several = HeteroData()
    several["person"].x = torch.ones(3, 2)
    several["person", "knows", "person"].edge_index = torch.tensor([[0], [1]])
    with pytest.raises(progap.DataError, match="no edge_index|no labels"):
        progap.from_pyg(several)
    with pytest.raises(progap.DataError, match="no labels y"):
        progap.from_pyg(Data(edge_index=torch.tensor([[0], [1]])))
    with pytest.raises(progap.DataError, match="several labels"):
        progap.from_pyg(Data(edge_index=torch.tensor([[0], [1]]), y=torch.zeros(2, 3)))


def test_from_a_dataset_to_tensors_of_predictions(tmp_path):
    made = FakeDataset(num_graphs=1, avg_num_nodes=300, num_channels=12, num_classes=4, task="node")[0]
    made.edge_index = to_undirected(made.edge_index, num_nodes=made.num_nodes)
    graph = progap.from_pyg(made, name="fake")
    model = progap.ProGAP(level="edge", epsilon=2.0, **FAST).fit(graph)
    assert model.guarantee_.private and model.guarantee_.unit == "edge-undirected"
    p = torch.from_numpy(model.predict_proba())
    assert p.shape == (made.num_nodes, 4) and torch.allclose(p.sum(1), torch.ones(len(p)), atol=1e-5)
    nodes = torch.tensor([5, 3])
    np.testing.assert_array_equal(model.predict(nodes), model.predict()[[5, 3]])
    assert model.score(nodes, made.y[nodes]) == np.mean(model.predict([5, 3]) == made.y[nodes].numpy())
    assert model.save(tmp_path / "release").verify().predict(nodes).shape == (2,)


def test_anything_with_the_same_attributes(data, graph):
    assert (
        progap.from_pyg(SimpleNamespace(x=data.x, edge_index=data.edge_index, y=data.y)).fingerprint()
        == graph.fingerprint()
    )
