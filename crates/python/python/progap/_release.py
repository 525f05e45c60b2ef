"""Releases: a model in a folder, with everything that predictions and a privacy officer need, and no graph."""

from __future__ import annotations

import html
import json
import os
import warnings
from pathlib import Path
from typing import Any, Iterable, Mapping

import numpy as np

from . import _arrays, _progap
from ._errors import AudienceWarning, DataError, ReleaseError
from ._graph import class_values
from ._guarantee import Guarantee


def caution(model: _progap.Model) -> None:
    """Warns, at the line of the caller's caller, where predictions are not for everyone."""
    if model.caution is not None:
        warnings.warn(model.caution, AudienceWarning, stacklevel=3)


def positions(model: _progap.Model, nodes: Any) -> np.ndarray | None:
    """Nodes as positions: None for all of them, whole numbers for positions, texts for ids."""
    if nodes is None:
        return None
    if isinstance(nodes, (str, bytes)):
        raise DataError(f"give a list of nodes, such as [{nodes!r}]")
    array = _arrays.as_array(nodes, "nodes")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0 and array.dtype.kind == "O":
        raise DataError(f"nodes are a {type(nodes).__name__}; give a list of them")
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise DataError(f"nodes have the shape {array.shape}; give a list of them")
    if array.dtype == bool:
        return np.flatnonzero(_arrays.chosen_nodes(array, len(model.ids()), "nodes")).astype(np.int64)
    if array.dtype.kind in "OUS":
        return model.positions([value if isinstance(value, str) else str(value) for value in array.tolist()])
    return _arrays.whole_numbers(array, "nodes").astype(np.int64)


def frame(model: _progap.Model, classes: np.ndarray, nodes: Any, library: str | None) -> Any:
    """Predictions as a table: id, class, and the probability of each class."""
    chosen = positions(model, nodes)
    codes, probabilities = model.predict(chosen)
    ids = np.asarray(model.ids())
    return predicted(model, ids if chosen is None else ids[chosen], classes[codes], probabilities, library)


def predicted(model: _progap.Model, ids: Any, classes: Any, probabilities: Any, library: str | None) -> Any:
    columns: dict[str, Any] = {"id": ids, "class": classes}
    for number, name in enumerate(model.class_names):
        columns[f"p({name})"] = probabilities[:, number]
    return table(columns, library)


def table(columns: Mapping[str, Any], library: str | None) -> Any:
    """A table of pandas or polars, whichever is asked for, or is there."""
    if library not in (None, "pandas", "polars"):
        raise ValueError(f"library is {library!r}; give 'pandas' or 'polars'")
    for name in ("pandas", "polars") if library is None else (library,):
        try:
            module = __import__(name)
        except ImportError:
            continue
        if name == "polars":
            plain = {key: list(value) if getattr(value, "dtype", None) == object else value for key, value in columns.items()}
            return module.DataFrame(plain)
        return module.DataFrame(dict(columns))
    raise ImportError(f"{library or 'pandas or polars'} is not installed")


class Finding(dict[str, Any]):
    """Something that was checked (``ok`` or ``wrong``), or that can only be claimed: what, detail, verdict."""

    def __repr__(self) -> str:
        return f"{self['verdict']}: {self['what']}: {self['detail']}"


class Release:
    """A release in a folder: opened, checked and asked for predictions without the graph.

    >>> import progap, tempfile
    >>> folder = tempfile.mkdtemp() + "/release"
    >>> _ = progap.ProGAP(epsilon=1.0).fit(progap.load("demo"), folder=folder)
    >>> release = progap.Release(folder).verify()
    >>> release.guarantee.unit
    'edge-undirected'
    >>> release.predict(["7", "12"]).shape
    (2,)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._model = _progap.Model.open(Path(folder))

    @classmethod
    def _of(cls, model: _progap.Model) -> Release:
        release = object.__new__(cls)
        release._model = model
        return release

    @property
    def folder(self) -> Path:
        """Where it lies."""
        folder = self._model.folder
        assert folder is not None, "a release lies in a folder"
        return Path(folder)

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed about it."""
        return Guarantee(json.loads(self._model.statement()), self._model.guarantee())

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run; :class:`ReleaseError` where the release is without its ``config.toml``."""
        return json.loads(self._model.settings())

    @property
    def metrics(self) -> dict[str, Any]:
        """Accuracies and the history of training; at node level they are for the data owner alone."""
        return json.loads(self._model.metrics())

    @property
    def classes(self) -> np.ndarray:
        """The classes: numbers where every name is one, else text."""
        return class_values(self._model.class_names)

    @property
    def node_ids(self) -> np.ndarray:
        """What people call the nodes."""
        return np.asarray(self._model.ids())

    def findings(self) -> list[Finding]:
        """Everything that can be recomputed, and the rest as claimed."""
        return [Finding(finding) for finding in json.loads(self._model.verify())]

    def verify(self) -> Release:
        """Recomputes the guarantee and all else that can be recomputed; raises :class:`ReleaseError` where something is wrong."""
        wrong = [finding for finding in self.findings() if not finding["ok"]]
        if wrong:
            said = "; ".join(f"{finding['what']}: {finding['detail']}" for finding in wrong)
            raise ReleaseError(f"{self.folder}: {said}: do not trust this release")
        return self

    def predict(self, nodes: Iterable[Any] | None = None) -> np.ndarray:
        """The class of some nodes (ids as text, positions as whole numbers), or of all of them. At level node a prediction about a node
        uses its own raw features: give it to that node, or to those who may see its features."""
        caution(self._model)
        codes, _ = self._model.predict(positions(self._model, nodes))
        return self.classes[codes]

    def predict_proba(self, nodes: Iterable[Any] | None = None) -> np.ndarray:
        """The probability of each class, in the order of ``classes``. At level node a prediction about a node uses its own raw features:
        give it to that node, or to those who may see its features."""
        caution(self._model)
        _, probabilities = self._model.predict(positions(self._model, nodes))
        return probabilities

    def to_frame(self, nodes: Iterable[Any] | None = None, *, library: str | None = None) -> Any:
        """Predictions as a table of pandas or polars: id, class, and the probability of each class. At level node a prediction about a
        node uses its own raw features: give it to that node, or to those who may see its features."""
        caution(self._model)
        return frame(self._model, self.classes, nodes, library)

    def predict_table(
        self, file: str | os.PathLike[str], *, id_column: str | None = None, library: str | None = None
    ) -> Any:
        """Predictions about nodes that were not there in training, by their features, as :meth:`to_frame` gives them. The file (CSV or Parquet) has the
        columns of the node table that was trained on, without label and split. At level node a prediction about a node uses its own raw
        features: give it to that node, or to those who may see its features."""
        caution(self._model)
        ids, (codes, probabilities) = self._model.predict_table(Path(file), id_column)
        return predicted(self._model, np.asarray(ids, dtype=object), self.classes[codes], probabilities, library)

    def to_onnx(self, file: str | os.PathLike[str] | None = None) -> bytes:
        """The model as ONNX: ``features``, and ``aggregate-K`` for each noisy aggregate that it reads, in; ``probabilities`` out. Also writes it, where a
        file is named."""
        content = self._model.to_onnx()
        if file is not None:
            Path(file).write_bytes(content)
        return content

    def package(self, form: str, out: str | os.PathLike[str]) -> list[str]:
        """Writes the model in a form that other tools load: ``"onnx"`` or ``"safetensors"`` (files), ``"hf"`` (a folder with a model card) or
        ``"mlflow"`` (a folder that ``mlflow.pyfunc`` loads). Gives the names of what was written."""
        return self._model.package(form, Path(out))

    def __repr__(self) -> str:
        return f"Release({str(self.folder)!r}, {self._model.guarantee()})"

    def _repr_html_(self) -> str:
        settings = self.settings
        return (
            f"<div><b>{html.escape(self._model.dataset)}</b>: {html.escape(settings['method'])} at level "
            f"{html.escape(settings['level'])}, in {html.escape(str(self.folder))}{self.guarantee._repr_html_()}</div>"
        )
