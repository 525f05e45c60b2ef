"""Graphs: the data that models are trained on."""

from __future__ import annotations

import html
import operator
import os
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from . import _arrays, _progap
from ._errors import DataError

_PARTS = {"train": 1, "val": 2, "test": 3}


class Graph:
    """A graph with the features and labels of its nodes. It holds a copy of what it is given, and does not change.
    Features in float32 that are read-only (``np.load("x.npy", mmap_mode="r")``, ``x.setflags(write=False)``) are not
    copied, but read where they lie.

    Parameters
    ----------
    x : matrix of features, one row for each node: NumPy, ``scipy.sparse``, torch, pandas or polars; may be left out.
        NaN in a dense matrix is a value that is missing, as in files: 0, and 1 in a column ``... missing`` that is
        added behind all others
    edge_index : 2 x E whole numbers, senders in row 0 and receivers in row 1, or two lists; or an adjacency matrix of
        ``scipy.sparse``
    y : one label for each node, whole numbers or text; NaN, None or -1 where it is not known
    train_mask, val_mask, test_mask : masks, or lists of nodes. With ``train_mask`` alone all other labelled nodes test;
        without any a split is drawn: 75 % train, 10 % validate, 15 % test
    node_ids : what people call the nodes; their positions if not given
    class_names, feature_names : names; those of the data if not given
    edge_weight : how much of a message each edge carries, in shares of ``weight_bound``; all of it if not given
    weight_bound : the public maximum of weights: they are divided by it and clamped to 0 to 1. Declare it, and do not
        compute it: the largest weight is that of one edge
    undirected : add the edge back to every edge that has none
    unscaled : take numbers as they are, in whatever unit; otherwise columns that hold more than 0 and 1 are brought to
        scale
    name : what people call the data; by it a ledger finds its budget
    num_nodes : the number of nodes, where there are neither features nor labels for all of them to tell it
    seed : of the split that is drawn; a split protects nothing and is public

    >>> import numpy as np, progap
    >>> g = progap.Graph(x=np.eye(4), edge_index=[[0, 1, 2], [1, 2, 3]], y=["a", "b", "a", None], train_mask=[0, 1])
    >>> g
    Graph('unnamed', 4 nodes, 3 edges, 4 features, 2 classes)
    >>> g.y.tolist()
    ['a', 'b', 'a', None]
    >>> g.test_mask.tolist()
    [False, False, True, False]
    """

    __slots__ = ("_data", "classes", "__weakref__")

    _data: _progap.Dataset
    classes: np.ndarray

    def __init__(
        self,
        x: Any = None,
        edge_index: Any = None,
        y: Any = None,
        *,
        train_mask: Any = None,
        val_mask: Any = None,
        test_mask: Any = None,
        node_ids: Any = None,
        class_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        adjacency: Any = None,
        edge_weight: Any = None,
        weight_bound: float | None = None,
        undirected: bool = False,
        unscaled: bool = False,
        name: str | None = None,
        num_nodes: int | None = None,
        seed: int = 0,
    ) -> None:
        if y is None:
            raise DataError("there are no labels: give y, with NaN, None or -1 where a label is not known")
        labels, classes = _arrays.labels(y, class_names)
        features, rows, columns = _arrays.features(x)
        sources, targets, square = _arrays.edges(edge_index, adjacency)
        nodes = len(labels)
        num_nodes = None if num_nodes is None else operator.index(num_nodes)
        for what, found in (("x", rows), ("the adjacency matrix", square), ("num_nodes", num_nodes)):
            if found is not None and found != nodes:
                raise DataError(f"{what} has {found} rows and y has {nodes}; give arrays that belong to the same nodes")
        names = [str(name) for name in feature_names] if feature_names is not None else columns
        data = _progap.Dataset.from_arrays(
            name="unnamed" if name is None else str(name),
            nodes=nodes,
            sources=sources,
            targets=targets,
            features=features,
            labels=labels,
            class_names=[str(label) for label in classes],
            feature_names=names,
            ids=_ids(node_ids, nodes),
            parts=_arrays.parts(nodes, train_mask, val_mask, test_mask),
            symmetrise=bool(undirected),
            unscaled=bool(unscaled),
            weights=_arrays.edge_weights(edge_weight, len(sources), weight_bound),
        )
        self._keep(data, classes, seed)

    def _keep(self, data: _progap.Dataset, classes: np.ndarray | None = None, seed: int = 0) -> Graph:
        if data.parts() is None:
            data = data.with_random_split(0.10, 0.15, _arrays.seed(seed))
        self._data = data
        self.classes = class_values(data.class_names) if classes is None else classes
        self.classes.setflags(write=False)
        return self

    @classmethod
    def _of(cls, data: _progap.Dataset, classes: np.ndarray | None = None, seed: int = 0) -> Graph:
        return object.__new__(cls)._keep(data, classes, seed)

    @property
    def name(self) -> str:
        """What people call the data."""
        return self._data.name

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._data.nodes

    @property
    def num_edges(self) -> int:
        """The number of directed edges."""
        return self._data.edges

    @property
    def num_features(self) -> int:
        """The number of feature columns."""
        return self._data.columns

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def feature_names(self) -> list[str]:
        """The names of the feature columns; empty where they have none."""
        return self._data.feature_names

    @property
    def undirected(self) -> bool:
        """Whether every edge has an edge back."""
        return self._data.undirected

    @property
    def node_ids(self) -> np.ndarray:
        """What people call the nodes."""
        return np.asarray(self._data.ids())

    @property
    def nodes(self) -> np.ndarray:
        """The positions of all nodes that have a label: what scikit-learn's tools divide into folds."""
        return np.flatnonzero(self._data.labels() >= 0)

    @property
    def x(self) -> np.ndarray:
        """The features, as a dense matrix."""
        return self._data.features()

    @property
    def edge_index(self) -> np.ndarray:
        """Senders in row 0, receivers in row 1, sorted by receiver."""
        return self._data.edge_index()

    @property
    def y(self) -> np.ndarray:
        """The label of each node; where some are missing, None among objects."""
        return label_values(self._data.labels(), self.classes)

    @property
    def train_mask(self) -> np.ndarray:
        """The nodes that train."""
        return self._part("train")

    @property
    def val_mask(self) -> np.ndarray:
        """The nodes that choose between epochs."""
        return self._part("val")

    @property
    def test_mask(self) -> np.ndarray:
        """The nodes that are only ever compared with predictions."""
        return self._part("test")

    def _part(self, part: str) -> np.ndarray:
        parts = self._data.parts()
        assert parts is not None, "a graph always has a split"
        return parts == _PARTS[part]

    def split(self, *, val: float = 0.10, test: float = 0.15, seed: int = 0) -> Graph:
        """The same graph with a new random split of the nodes that have a label."""
        return Graph._of(self._data.with_random_split(val, test, _arrays.seed(seed)), self.classes)

    def with_masks(self, train_mask: Any, val_mask: Any = None, test_mask: Any = None) -> Graph:
        """The same graph with another split."""
        parts = _arrays.parts(self.num_nodes, train_mask, val_mask, test_mask)
        if parts is None:
            raise DataError("there is no train_mask: say which nodes train")
        return Graph._of(self._data.with_parts(parts), self.classes)

    def with_relation(self, name: str) -> Graph:
        """The same graph with a name for what an edge stands for, such as "payment", which statements and reports then
        use."""
        return Graph._of(self._data.with_relation(name), self.classes)

    def check(self, **settings: Any) -> list[str]:
        """What looks like a mistake in the data for a model with these settings, before anything is spent.

        >>> import progap
        >>> g = progap.Graph(edge_index=[[0, 1, 2], [1, 2, 0]], y=[0, 1, 0], train_mask=[0, 1])
        >>> any("few" in remark for remark in g.check(level="edge"))
        True
        """
        return [text for _, _, text in self._data.check(settings)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``.progap`` file, which ``load`` maps instead of parsing. It holds the private data."""
        self._data.save(Path(path))

    def fingerprint(self) -> str:
        """32 hexadecimal digits that tell whether two graphs have the same content, whatever their split."""
        return self._data.fingerprint()

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {_facts(self)})"

    def _repr_html_(self) -> str:
        split = ", ".join(f"{int(self._part(part).sum()):,} {part}" for part in _PARTS)
        return (
            f"<div><b>{html.escape(self.name)}</b>: {html.escape(_facts(self))}<br>"
            f"{'undirected' if self.undirected else 'directed'}; {split}</div>"
        )

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Graph:
        return self

    def __reduce__(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "graph.progap"
            self.save(file)
            return _unpickled, (file.read_bytes(), self.name, np.array(self.classes))


def _unpickled(content: bytes, name: str, classes: np.ndarray) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name if name.isidentifier() else 'graph'}.progap"
        file.write_bytes(content)
        return Graph._of(_progap.Dataset.saved(file), classes)


def _facts(graph: Graph) -> str:
    return (
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} features, "
        f"{graph.num_classes} classes"
    )


def _ids(node_ids: Any, nodes: int) -> Any:
    if node_ids is None:
        return None
    array = _arrays.as_array(node_ids, "node_ids")
    if array.shape != (nodes,):
        raise DataError(
            f"node_ids has the shape {array.shape} and there are {nodes} nodes; give one of the node ids for each"
        )
    if array.dtype.kind in "iu":
        return _arrays.signed(array, "node_ids", "number of a node; give it as text")
    return [str(value) for value in array.tolist()]


def class_values(names: Sequence[str]) -> np.ndarray:
    """Classes as people know them: numbers where every name is one, else text."""
    try:
        numbers = [int(name) for name in names]
    except ValueError:
        numbers = []
    if numbers and [str(number) for number in numbers] == list(names) and max(map(abs, numbers)) < 2**63:
        return np.array(numbers, np.int64)
    return np.array(names, dtype=object)


def label_values(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels as people know them, from their numbers; None where there is none."""
    if (codes >= 0).all():
        return classes[codes]
    values = np.empty(len(codes), dtype=object)
    known = codes >= 0
    values[known] = classes[codes[known]]
    return values
