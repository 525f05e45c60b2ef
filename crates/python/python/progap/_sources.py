"""Graphs from files, and from other libraries' objects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from . import _arrays, _progap
from ._errors import DataError
from ._graph import Graph
from ._tables import csv_of, is_table


def load(
    source: str | os.PathLike[str],
    *,
    edges: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    id: str | None = None,
    label: str | None = None,
    split: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weights: str | None = None,
    weight_bound: float | None = None,
    categorical: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    text: Mapping[str, int] | None = None,
    max_categories: int | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    unknown: str | Sequence[str] | None = None,
    unscaled: bool = False,
    undirected: bool = False,
    symmetrise: bool = False,
    mask: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    seed: int = 0,
) -> Graph:
    """Loads a graph: a folder or file of any format that the command reads, or a data set by name, such as ``"demo"``.

    Parameters
    ----------
    source : a folder with node and edge tables, or a file: CSV, Parquet, ``.npz``, GraphML, node-link JSON, an edge
        list, a Facebook100 ``.mat``, ``.progap``; or a name from ``progap data list``
    edges : the edge table, where ``source`` is a node table
    labels : the list of labels that goes with an edge list
    header : whether the first line of an edge list or of its labels is a header; where nothing is said, its look
        decides
    encoding : of files of text: ``"utf-8"``, ``"latin-1"`` or ``"utf-16"``
    id, label, split, source_column, target_column : names of columns
    categorical, drop, keep, text, max_categories, unscaled : what columns are; ``text`` maps a column to the number of
        features its words are hashed to
    columns : what is known of columns, as in the file of ``progap train --columns``: ``{"age": {"bounds": [0, 120]},
        "town": {"categories": ["Ulm", "Bonn"]}}``
    unknown : the labels that stand for "not known", in place of the usual words and of -1
    undirected : every edge has an edge back, or is listed once; what contradicts it is refused
    symmetrise : add the edge back where it is missing
    weights : where the weights of edges stand: a column, an attribute, an array; ``"weight"`` stands for all usual
        names; messages are multiplied with them
    weight_bound : the public maximum of weights, which goes with ``weights``: they are divided by it and clamped to 0
        to 1
    mask : which of several splits
    data_dir : where data sets by name lie
    seed : of a split that is drawn

    >>> import progap
    >>> progap.load("demo")
    Graph('demo', 20,000 nodes, 1,299,928 edges, 428 features, 6 classes)
    """
    options = _options(
        id=id,
        label=label,
        split=split,
        source=source_column,
        target=target_column,
        weights=None if weights is None else (weights, _arrays.weight_bound(weight_bound)),
        labels=None if labels is None else Path(labels),
        header=header,
        encoding=encoding,
        categorical=_names(categorical),
        drop=_names(drop),
        keep=_names(keep),
        text=dict(text or {}),
        max_categories=max_categories,
        columns=_said(columns),
        unknown=None if unknown is None else _names(unknown),
        unscaled=unscaled,
        undirected=undirected,
        symmetrise=symmetrise,
        mask=mask,
        seed=_arrays.seed(seed),
    )
    data = _progap.Dataset.load(Path(source), _path(edges), _path(data_dir), options)
    return Graph._of(data, None, seed)


def _path(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)


def _said(columns: Mapping[str, Mapping[str, Any]] | None) -> str | None:
    return None if columns is None else json.dumps({name: dict(said) for name, said in columns.items()})


def _names(given: str | Iterable[Any]) -> list[str]:
    """Several names; one alone need not be in a list."""
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _options(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def from_pandas(
    nodes: Any,
    edges: Any,
    *,
    id: str | None = None,
    label: str | None = None,
    split: str | None = None,
    source: str | None = None,
    target: str | None = None,
    categorical: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    text: Mapping[str, int] | None = None,
    max_categories: int | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    unknown: str | Sequence[str] | None = None,
    unscaled: bool = False,
    undirected: bool = False,
    symmetrise: bool = False,
    weights: str | None = None,
    weight_bound: float | None = None,
    name: str = "unnamed",
    seed: int = 0,
) -> Graph:
    """A graph from a table of nodes and a table of edges, of pandas or polars, exactly as ``load`` reads the same
    tables from files: numbers stay numbers, names become one feature for each value, dates become days, and gaps are
    told apart from zeros.

    >>> import pandas as pd, progap
    >>> people = pd.DataFrame({"id": ["ann", "bob", "cid", "dan"], "label": ["x", "y", "x", None],
    ...                        "age": [30, 40, None, 25], "town": ["Ulm", "Bonn", "Ulm", "Ulm"]})
    >>> calls = pd.DataFrame({"source": ["ann", "bob", "dan"], "target": ["bob", "cid", "ann"]})
    >>> g = progap.from_pandas(people, calls)
    >>> g.feature_names
    ['age', 'age missing', 'town=Bonn', 'town=Ulm']
    """
    options = _options(
        id=id,
        label=label,
        split=split,
        source=source,
        target=target,
        categorical=_names(categorical),
        drop=_names(drop),
        keep=_names(keep),
        text=dict(text or {}),
        max_categories=max_categories,
        columns=_said(columns),
        unknown=None if unknown is None else _names(unknown),
        unscaled=unscaled,
        undirected=undirected,
        symmetrise=symmetrise,
        weights=None if weights is None else (weights, _arrays.weight_bound(weight_bound)),
        seed=_arrays.seed(seed),
    )
    data = _progap.Dataset.from_tables(str(name), csv_of(nodes, "nodes"), csv_of(edges, "edges"), options)
    return Graph._of(data, None, seed)


def from_polars(nodes: Any, edges: Any, **options: Any) -> Graph:
    """As :func:`from_pandas`, for tables of polars.

    >>> import polars as pl, progap
    >>> people = pl.DataFrame({"id": [1, 2, 3], "label": ["x", "y", "x"], "age": [30, 40, 50]})
    >>> progap.from_polars(people, pl.DataFrame({"source": [1, 2], "target": [2, 3]})).num_edges
    2
    """
    return from_pandas(nodes, edges, **options)


def from_networkx(
    graph: Any,
    *,
    label: str = "label",
    features: Iterable[str] | None = None,
    split: str | None = None,
    weights: str | None = None,
    weight_bound: float | None = None,
    **options: Any,
) -> Graph:
    """A graph of NetworkX. Attributes of nodes are columns: ``label`` names that of the classes, ``features`` those
    that are used (if not given, all others but ``id`` and ``label``). ``weights`` names the attribute of edges that
    holds their weights, ``weight_bound`` their public maximum. Other options are those of :func:`from_pandas`. An
    undirected graph has each edge in both directions. Nodes keep the order of ``graph.nodes``, which is public in a
    release: where a graph was made of edges alone, that order tells some of them, so add the nodes first, sorted
    (``graph.add_nodes_from(sorted(...))``).

    >>> import networkx as nx, progap
    >>> club = nx.karate_club_graph()
    >>> progap.from_networkx(club, label="club")
    Graph("Zachary's Karate Club", 34 nodes, 156 edges, 0 features, 2 classes)
    """
    if not hasattr(graph, "is_directed") or not hasattr(graph, "nodes"):
        raise DataError(f"this is a {type(graph).__name__}; give a graph of NetworkX")
    rows = [{str(key): value for key, value in data.items()} for _, data in graph.nodes(data=True)]
    found = sorted({key for row in rows for key in row})
    wanted = (
        [key for key in found if key not in (label, split, "id", "label")]
        if features is None
        else [str(name) for name in features]
    )
    for what, name in (("label", label), *(("features", name) for name in wanted)):
        if name not in found:
            raise DataError(
                f"no node has an attribute {name!r} (found: {', '.join(found) or 'nothing'}); name the right one with "
                f"{what}="
            )
    id = next(name for name in ("id", *(f"id {number}" for number in range(len(found) + 1))) if name not in found)
    columns: dict[str, list[Any]] = {id: [str(node) for node in graph.nodes]}
    for name in (label, *([] if split is None else [split]), *wanted):
        columns[name] = [row.get(name) for row in rows]
        if any(np.ndim(value) > 0 for value in columns[name]):
            raise DataError(
                f"the attribute {name!r} of nodes holds arrays; give one value for each node, or progap.Graph(x=...) "
                f"a matrix"
            )
    ends = list(graph.edges(data=True))
    edges: dict[str, list[Any]] = {
        "source": [str(source) for source, _, _ in ends],
        "target": [str(target) for _, target, _ in ends],
    }
    if weights is not None:
        if not any(weights in data for _, _, data in ends):
            raise DataError(f"no edge has an attribute {weights!r}; name the right one with weights=")
        # As NetworkX has it: an edge that does not say counts once.
        edges["weight"] = [data.get(weights, 1) for _, _, data in ends]
    options.setdefault("symmetrise", not graph.is_directed())
    options.setdefault("name", str(graph.name) or "unnamed")
    if features is not None:
        options.setdefault("keep", wanted)
    named: dict[str, Any] = {
        "id": id,
        "label": label,
        "split": split,
        "source": "source",
        "target": "target",
        "weights": None if weights is None else "weight",
        "weight_bound": weight_bound,
    }
    return from_pandas(_Table(columns), _Table(edges), **named, **options)


class _Table:
    """Columns by name, as text."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns

    def to_csv(self, file: Any, index: bool) -> None:
        import csv

        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(
            ["" if value is None or value != value else value for value in row] for row in zip(*self.columns.values())
        )


def from_pyg(data: Any, **options: Any) -> Graph:
    """A ``torch_geometric.data.Data``, or anything with its attributes: ``x``, ``edge_index``, ``y``, and masks where
    it has them. Of several masks, one in each column, the first is taken.

    >>> import numpy as np, progap
    >>> from types import SimpleNamespace
    >>> data = SimpleNamespace(x=np.eye(3), edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 1, 0]))
    >>> progap.from_pyg(data).num_edges
    2
    """
    if getattr(data, "edge_index", None) is None and getattr(data, "adj_t", None) is None:
        raise DataError(
            f"this {type(data).__name__} has no edge_index; give a Data of PyTorch Geometric with one kind of nodes"
        )
    if getattr(data, "y", None) is None:
        raise DataError(f"this {type(data).__name__} has no labels y")
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None:
        # By receiver: a tensor of torch, or of torch_sparse.
        stored = data.adj_t.t()
        edge_index = tuple(stored.coo()[:2]) if hasattr(stored, "coo") else stored
    masks = {}
    for mask in ("train_mask", "val_mask", "test_mask"):
        value = getattr(data, mask, None)
        if value is not None:
            array = _arrays.as_array(value, mask)
            masks[mask] = array[:, 0] if array.ndim == 2 else array
    y = _arrays.as_array(data.y, "y")
    if y.ndim == 2 and y.shape[1] > 1:
        raise DataError(f"y has the shape {y.shape}: several labels for each node are not supported; choose one column")
    return Graph(getattr(data, "x", None), edge_index, np.ravel(y), **{**masks, **options})


def as_graph(value: Any) -> Graph:
    """A graph, as it is or of what is one elsewhere: a path, a graph of NetworkX, a Data of PyTorch Geometric."""
    if isinstance(value, Graph):
        return value
    if isinstance(value, (str, os.PathLike)):
        return load(value)
    if hasattr(value, "edge_index") or hasattr(value, "adj_t"):
        return from_pyg(value)
    if hasattr(value, "is_directed") and hasattr(value, "nodes"):
        try:
            return from_networkx(value)
        except DataError as error:
            raise DataError(f"{error}: give progap.from_networkx(graph, label=...), not the graph itself") from None
    if is_table(value):
        raise DataError("one table is no graph: give progap.from_pandas(nodes, edges)")
    known = "a progap.Graph, a path, a graph of NetworkX or a Data of PyTorch Geometric"
    raise TypeError(f"this is a {type(value).__name__}; give {known}")
