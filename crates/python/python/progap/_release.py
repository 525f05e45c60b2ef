"""Releases: a model in a folder, with everything that predictions and a privacy officer need, and no graph."""

from __future__ import annotations

import datetime
import hashlib
import html
import json
import os
import warnings
from pathlib import Path
from typing import Any, Iterable, Mapping, NamedTuple

import numpy as np

from . import _arrays, _progap
from ._errors import AudienceWarning, DataError, ReleaseError
from ._graph import class_values
from ._guarantee import Guarantee
from ._progap import Key
from ._tables import later_rows, library_of


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
        return np.flatnonzero(_arrays.chosen_nodes(array, model.num_nodes, "nodes")).astype(np.int64)
    if array.dtype.kind in "OUS":
        return model.positions([value if isinstance(value, str) else str(value) for value in array.tolist()])
    return _arrays.whole_numbers(array, "nodes").astype(np.int64)


def frame(model: _progap.Model, classes: np.ndarray, nodes: Any, library: str | None) -> Any:
    """Predictions as a table: id, class, whether the label was known in training, and the probability of each class."""
    chosen = positions(model, nodes)
    codes, probabilities = model.predict(chosen)
    ids, labelled = np.asarray(model.ids(chosen)), model.labelled(chosen)
    return predicted(model, ids, classes[codes], labelled, probabilities, library)


def predicted(
    model: _progap.Model, ids: Any, classes: Any, labelled: Any, probabilities: Any, library: str | None
) -> Any:
    columns: dict[str, Any] = {"id": ids, "class": classes, "labelled": labelled}
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
            plain = {
                key: list(value) if getattr(value, "dtype", None) == object else value for key, value in columns.items()
            }
            return module.DataFrame(plain)
        return module.DataFrame(dict(columns))
    raise ImportError(f"{library or 'pandas or polars'} is not installed")


class Finding(dict[str, Any]):
    """Something that was checked (``ok`` or ``wrong``), or that can only be claimed: what, detail, verdict."""

    def __repr__(self) -> str:
        return f"{self['verdict']}: {self['what']}: {self['detail']}"


class TablePredictions(NamedTuple):
    """Predictions about the rows of a table, and the rows that do not fit."""

    #: id, class, ``labelled`` (False) and the probability of each class, one row for each row of the table that fits.
    frame: Any
    #: row (the position in a data frame; in a file as a text editor counts lines), id, column, reason; empty where all
    #: rows fit.
    rejects: Any


class TableFeatures(NamedTuple):
    """The rows of a table as features, and the rows that do not fit."""

    #: The ids of the rows that fit.
    ids: np.ndarray
    #: One row of float32 for each of them, in the columns and on the scale of training.
    x: np.ndarray
    #: As of :class:`TablePredictions`.
    rejects: Any


class Export(NamedTuple):
    """A copy of a release that may be shared."""

    #: The copy, opened.
    release: Release
    #: The SHA-256 of its manifest, by which it is known.
    sha256: str
    #: The names of its files.
    files: list[str]
    #: The fingerprint of the key that signed it; None without one.
    signed_by: str | None


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
        return np.asarray(self._model.ids(None))

    def findings(self, *, signer: Key | str | os.PathLike[str] | None = None) -> list[Finding]:
        """Everything that can be recomputed, and the rest as claimed; also who signed it, as :meth:`verify` asks."""
        return [Finding(finding) for finding in json.loads(self._model.verify(_key(signer)))]

    def verify(self, *, signer: Key | str | os.PathLike[str] | None = None) -> Release:
        """Recomputes the guarantee and all else that can be recomputed; raises :class:`ReleaseError` where something
        is wrong. ``signer`` is the public key (a :class:`Key`, or its file) of the expected signer."""
        wrong = [finding for finding in self.findings(signer=signer) if not finding["ok"]]
        if wrong:
            said = "; ".join(f"{finding['what']}: {finding['detail']}" for finding in wrong)
            raise ReleaseError(f"{self.folder}: {said}: do not trust this release")
        return self

    def predict(self, nodes: Iterable[Any] | None = None) -> np.ndarray:
        """The class of some nodes (ids as text, positions as whole numbers), or of all of them. At level node a
        prediction about a node uses its own raw features: give it to that node, or to those who may see its
        features."""
        caution(self._model)
        codes, _ = self._model.predict(positions(self._model, nodes))
        return self.classes[codes]

    def predict_proba(self, nodes: Iterable[Any] | None = None) -> np.ndarray:
        """The probability of each class, in the order of ``classes``. At level node a prediction about a node uses its
        own raw features: give it to that node, or to those who may see its features."""
        caution(self._model)
        _, probabilities = self._model.predict(positions(self._model, nodes))
        return probabilities

    def to_frame(self, nodes: Iterable[Any] | None = None, *, library: str | None = None) -> Any:
        """Predictions as a table of pandas or polars: id, class, ``labelled`` (whether the label was known in
        training), and the probability of each class. At level node a prediction about a node uses its own raw
        features: give it to that node, or to those who may see its features."""
        caution(self._model)
        return frame(self._model, self.classes, nodes, library)

    def predict_table(
        self, table: Any, *, id: str | None = None, lenient: bool = False, library: str | None = None
    ) -> TablePredictions:
        """Predictions about nodes that were not there in training, by their features:
        ``frame, rejects = release.predict_table(table)``. At level node a prediction about a node uses its own raw
        features: give it to that node, or to those who may see its features.

        ``table`` is a data frame of pandas or polars, or a file (CSV or Parquet), with the columns of the node table
        that was trained on, without label and split. It is read as training read that: the same categories, order of
        dates, scale and gaps. ``id`` names its column of ids; a data frame without one goes by its index, or by the
        positions of its rows.

        A row that does not fit (a category that was not known, text among numbers, a missing value where none was
        missing, an id that stands twice) is not in ``frame`` but in ``rejects``, with its column and the reason. With
        ``lenient`` a value that does not fit is taken as missing, where the column had missing values, or names, in
        training."""
        caution(self._model)
        rows, place = later_rows(table, id)
        ids, (codes, probabilities), unread = self._model.predict_table(rows, id, lenient)
        library = library_of(table) if library is None else library
        labelled = np.zeros(len(ids), bool)
        named = np.asarray(ids, dtype=object)
        found = predicted(self._model, named, self.classes[codes], labelled, probabilities, library)
        return TablePredictions(found, _rejects(unread, place, library))

    def features(self, table: Any, *, id: str | None = None, lenient: bool = False) -> TableFeatures:
        """The rows of a table (see :meth:`predict_table`) as the features that the model reads: what ONNX takes as
        ``features``.

        ``session.run(["probabilities"], {"features": release.features(table).x})`` with the model of
        ``to_onnx(for_rows=True)`` gives what ``predict_table`` gives."""
        rows, place = later_rows(table, id)
        ids, x, unread = self._model.features(rows, id, lenient)
        return TableFeatures(np.asarray(ids, dtype=object), x, _rejects(unread, place, library_of(table)))

    def to_onnx(self, file: str | os.PathLike[str] | None = None, *, for_rows: bool = False) -> bytes:
        """The model as ONNX: ``features``, and ``aggregate-K`` for each noisy aggregate that it reads, in;
        ``probabilities`` out. With ``for_rows`` the model for nodes that were not there in training, as
        :meth:`predict_table` has it: it takes ``features`` alone, those of :meth:`features`. Also writes it, where a
        file is named."""
        content = self._model.to_onnx(for_rows)
        if file is not None:
            Path(file).write_bytes(content)
        return content

    def package(self, form: str, out: str | os.PathLike[str]) -> list[str]:
        """Writes the model in a form that other tools load: ``"onnx"`` or ``"safetensors"`` (files), ``"hf"`` (a folder
        with a model card) or ``"mlflow"`` (a folder that ``mlflow.pyfunc`` loads). Gives the names of what was
        written."""
        return self._model.package(form, Path(out))

    def export(
        self,
        out: str | os.PathLike[str],
        *,
        with_rows: bool = False,
        date: str | datetime.date | None = None,
        sign: Key | str | os.PathLike[str] | None = None,
    ) -> Export:
        """Makes a copy that may be shared in a new folder, as ``progap export`` does: without what is private, dated,
        with the public page and a hash.

        ``with_rows`` keeps features and labels of all nodes, in the clear, so that it predicts; not at node level,
        where they are private. ``date`` is the day that it bears (today if not given), ``sign`` a secret key (a
        :class:`Key`, or its file) that signs it."""
        day = None if date is None else str(date)
        sha256, files, signed_by = self._model.export(Path(out), with_rows, day, _key(sign))
        return Export(Release(out), sha256, files, signed_by)

    def __reduce__(self) -> Any:
        # By its path: a release holds rows, which a pickle would carry on.
        return _reopened, (str(self.folder.resolve()), _identity(self.folder))

    def __repr__(self) -> str:
        return f"Release({str(self.folder)!r}, {self._model.guarantee()})"

    def _repr_html_(self) -> str:
        settings = self.settings
        return (
            f"<div><b>{html.escape(self._model.dataset)}</b>: {html.escape(settings['method'])} at level "
            f"{html.escape(settings['level'])}, in {html.escape(str(self.folder))}{self.guarantee._repr_html_()}</div>"
        )


def _reopened(folder: str, identity: str) -> Release:
    """The release that was pickled, verified: it is opened where it lay."""
    release = Release(folder).verify()
    if _identity(release.folder) != identity:
        raise ReleaseError(f"{folder}: another release lies here than when this one was pickled")
    return release


def _identity(folder: Path) -> str:
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def _key(key: Key | str | os.PathLike[str] | None) -> Key | None:
    return key if key is None or isinstance(key, Key) else Key.load(Path(key))


def _rejects(unread: tuple[list[tuple[int, int, str, str, str]], int], place: str, library: str | None) -> Any:
    rejects, _ = unread
    at = 0 if place == "position" else 1
    columns: dict[str, Any] = {"row": np.array([reject[at] for reject in rejects], np.int64)}
    for number, name in enumerate(("id", "column", "reason"), 2):
        columns[name] = np.array([reject[number] for reject in rejects], dtype=object)
    return table(columns, library)
