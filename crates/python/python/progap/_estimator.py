"""The estimator: every method and level, in scikit-learn's words."""

from __future__ import annotations

import html
import inspect
import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable

import numpy as np

from . import _arrays, _budget, _progap
from ._errors import DataError, NotPrivateWarning, PrivacyError, ProGAPError, ReleaseError, SettingsError
from ._graph import Graph
from ._guarantee import Guarantee
from ._release import Release, caution, frame, positions
from ._sources import as_graph

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._parameters import Parameters

#: Every setting of the library, as it is declared there.
SETTINGS: dict[str, dict[str, Any]] = {about["name"]: about for about in _progap.declarations() if about["offered"]}

#: What the estimator takes besides: name, type and what it is.
OTHERS: dict[str, tuple[str, str]] = {
    "directed": (
        "bool",
        "At level edge: protect one direction of an edge (True) or both together (False); by the graph if not given",
    ),
    "preset": ("str", "``'paper'`` starts from the published settings"),
    "random_state": ("int", "For experiments: makes noise and initial values repeatable, and the model not private"),
    "ledger": ("path", "Ledger to charge before any noisy value is used; it refuses what exceeds the budget"),
    "ledger_name": ("str", "The data set's name in the ledger; found by the data if not given"),
    "graph": (
        "Graph",
        "The graph, where ``fit`` is given nodes: for scikit-learn's tools, which divide nodes into folds",
    ),
    "progress": (
        "bool or callable",
        "True shows a bar of tqdm; a function is called with each epoch's Progress, and stops the run by returning "
        "False",
    ),
}

PARAMETERS = (*SETTINGS, *OTHERS)


class ProGAP:
    # The docstring is made of the declarations, below.

    _estimator_type = "classifier"

    def __init__(self, **parameters: Unpack[Parameters]) -> None:
        unknown = [name for name in parameters if name not in PARAMETERS]
        if unknown:
            raise TypeError(f"ProGAP takes no argument {unknown[0]!r}; it takes {', '.join(PARAMETERS)}")
        for name in PARAMETERS:
            setattr(self, name, parameters.get(name))

    # -- scikit-learn's words --------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; None is the default of the method at the level."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> ProGAP:
        """Changes parameters by name."""
        for name in parameters:
            if name not in PARAMETERS:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}; it has {', '.join(PARAMETERS)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),
            transformer_tags=None,
            regressor_tags=None,
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(one_d_array=True, two_d_array=False),
            non_deterministic=True,
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in PARAMETERS if getattr(self, name) is not None]
        return f"ProGAP({', '.join(given)})"

    # -- Training --------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """All settings that these parameters come to; raises what cannot work, before any data is touched.

        >>> progap.ProGAP(method="progap-labels", level="node", clip=0.5).settings()["epsilon"]
        8.0
        """
        return json.loads(_progap.check_settings(self._asked(), self._published()))

    def _asked(self) -> dict[str, Any]:
        given = ((name, getattr(self, name)) for name in SETTINGS)
        asked = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in given if value is not None
        }
        directed = self.directed  # type: ignore[attr-defined]
        if directed is not None:
            if not isinstance(directed, (bool, np.bool_)):
                raise TypeError(f"directed is {directed!r}; give True or False")
            asked["undirected"] = not directed
        seed = _seed(self.random_state)  # type: ignore[attr-defined]
        if seed is not None:
            asked["seed"] = seed
        return asked

    def _published(self) -> bool:
        preset = self.preset  # type: ignore[attr-defined]
        if preset not in (None, "default", "paper"):
            raise ValueError(f"preset is {preset!r}; give 'paper', or nothing for the defaults")
        return preset == "paper"

    def plan(self, graph: Graph) -> dict[str, Any]:
        """What ``fit`` on this graph would cost, without running it: epsilon, delta, unit, and the event tree.

        >>> progap.ProGAP(level="edge", epsilon=1.0).plan(progap.load("demo"))["unit"]
        'edge-undirected'
        """
        epsilon, delta, unit, event, _ = _progap.plan(as_graph(graph)._data, self._asked(), self._published())
        private = unit is not None
        return {
            "epsilon": epsilon if private else None,
            "delta": delta if private else None,
            "unit": unit,
            "event": _progap.Event.from_json(event) if private else _progap.Event.non_private(),
        }

    def fit(self, X: Any = None, y: Any = None, *, folder: str | os.PathLike[str] | None = None) -> ProGAP:
        """Trains on a graph.

        Parameters
        ----------
        X : a Graph, or what is one in another library: a path or a name as of :func:`progap.load`, a graph of NetworkX,
            a ``Data`` of PyTorch Geometric; or, with ``graph=`` given, the positions of the nodes to train on, as
            scikit-learn's tools hand them over
        y : with positions of nodes, their labels, which are those of the graph
        folder : where the release goes. What was done survives a crash or Ctrl-C there, and :func:`progap.resume`
            resumes it. Without it training is in memory only, and ``save`` writes the release
        """
        graph = self._data(X, y)
        asked, published = self._asked(), self._published()
        settings = json.loads(_progap.check_settings(asked, published))
        if settings["level"] != "none" and asked.get("seed") is not None:
            warnings.warn(
                "random_state makes the noise repeatable: this model has no guarantee; leave it out for one that is "
                "private",
                NotPrivateWarning,
                stacklevel=2,
            )
        ledger = self.ledger  # type: ignore[attr-defined]
        callback = _callback(self.progress)  # type: ignore[attr-defined]
        taken = folder is not None and Path(folder).exists()
        counts = ledger is None and settings["level"] != "none" and asked.get("seed") is None
        people = graph._data.identity() if counts else None
        try:
            model = _progap.train(
                graph._data,
                asked,
                published,
                None if folder is None else Path(folder),
                None if ledger is None else Path(getattr(ledger, "path", ledger)),
                self.ledger_name,  # type: ignore[attr-defined]
                callback,
            )
        except BaseException as error:
            refused = isinstance(error, (SettingsError, DataError, PrivacyError)) or (
                isinstance(error, ReleaseError) and taken
            )
            if people is not None and (not refused or (callback is not None and callback.called)):
                # Stopped on the way: noisy answers may have been seen.
                self._count_planned(people, graph, asked, published)
            raise
        finally:
            if callback is not None:
                callback.close()
        self._take(model, graph)
        if people is not None and self.guarantee_.private:
            statement = self.guarantee_.statement
            events = [(statement["unit"], json.dumps(statement["event"])), *model.events_in_other_units()]
            _budget.count(people, events, statement["delta"], caller=2)
        return self

    def _count_planned(self, people: _progap.Identity, graph: Graph, asked: dict[str, Any], published: bool) -> None:
        try:
            _, delta, unit, event, others = _progap.plan(graph._data, asked, published)
        except ProGAPError:
            return
        if unit is not None:
            _budget.count(people, [(unit, event), *others], delta, caller=3)

    def _take(self, model: _progap.Model, graph: Graph) -> None:
        self._model = model
        self.graph_ = graph
        self.classes_ = graph.classes
        self.n_features_in_ = graph.num_features
        self.guarantee_ = Guarantee(json.loads(model.statement()), model.guarantee())
        self.settings_ = json.loads(model.settings())
        self.metrics_ = json.loads(model.metrics())

    def _data(self, X: Any, y: Any) -> Graph:
        graph = self.graph  # type: ignore[attr-defined]
        if isinstance(X, Graph) or (X is not None and graph is None and not _is_array(X)):
            if y is not None:
                raise DataError("the labels are part of the graph: leave y out")
            return as_graph(X)
        if X is None and graph is not None:
            return as_graph(graph)
        if graph is None:
            raise DataError(
                "rows alone are no graph: give fit a progap.Graph (of tables progap.from_pandas makes one), or give "
                "ProGAP(graph=...) one and fit the positions of nodes"
            )
        graph = as_graph(graph)
        nodes = _nodes(X, graph.num_nodes)
        if y is not None:
            _check_labels(graph, nodes, y)
        mask = np.zeros(graph.num_nodes, bool)
        mask[nodes] = True
        return graph.with_masks(mask)

    # -- What it says ----------------------------------------------------------------------------------------

    def _fitted(self) -> _progap.Model:
        if not hasattr(self, "_model"):
            raise _not_fitted(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with a graph first.")
        self.graph_._data.ensure_unchanged()
        return self._model

    def _about(self, X: Any) -> np.ndarray | None:
        model = self._fitted()
        if not isinstance(X, Graph):
            return positions(model, X)
        if X is not self.graph_ and X.fingerprint() != self.graph_.fingerprint():
            raise DataError("predictions are about the nodes that were trained on: this is another graph")
        return None

    def predict(self, X: Any = None) -> np.ndarray:
        """The class of some nodes (positions as whole numbers, ids as text), or of all of them. At level node a
        prediction about a node uses its own raw features: give it to that node, or to those who may see its
        features."""
        caution(self._fitted())
        codes, _ = self._fitted().predict(self._about(X))
        return self.classes_[codes]

    def predict_proba(self, X: Any = None) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``. At level node a prediction about a node uses its
        own raw features: give it to that node, or to those who may see its features."""
        caution(self._fitted())
        _, probabilities = self._fitted().predict(self._about(X))
        return probabilities

    def to_frame(self, nodes: Iterable[Any] | None = None, *, library: str | None = None) -> Any:
        """Predictions as a table of pandas or polars: id, class, ``labelled`` (whether the label was known in
        training), and the probability of each class. At level node a prediction about a node uses its own raw
        features: give it to that node, or to those who may see its features."""
        caution(self._fitted())
        return frame(self._fitted(), self.classes_, nodes, library)

    def score(self, X: Any = None, y: Any = None) -> float:
        """The accuracy on the test nodes, or on the nodes that are given. It is measured on labels without noise. At
        level node a prediction about a node uses its own raw features, and labels are private: the figure is for the
        data owner, or for those who may see them."""
        caution(self._fitted())
        asked = self._about(X)
        chosen = np.flatnonzero(self.graph_.test_mask).astype(np.int64) if asked is None else asked
        codes, _ = self._fitted().predict(chosen)
        if asked is not None and y is not None:
            given = _arrays.as_array(y, "y").ravel()
            if len(given) != len(codes) or len(codes) == 0:
                raise DataError(
                    f"there are {len(codes)} nodes and {len(given)} labels to compare with; give one label for each "
                    f"node"
                )
            return float(np.mean(_alike(self.classes_[codes], given)))
        labels = self.graph_._data.labels()[chosen]
        known = labels >= 0
        if not known.any():
            raise DataError("none of these nodes has a label to compare with")
        return float(np.mean(codes[known] == labels[known]))

    def save(self, folder: str | os.PathLike[str], *, shuffle: bool = False, order: str | None = None) -> Release:
        """Writes the release into a new folder: model, noisy aggregates, privacy statement; no graph. Nodes are listed
        in the order of their ids; where that tells edges, ``shuffle=True`` renumbers them at random, and
        ``order="public"`` says that anyone may know it."""
        model = self._fitted()
        if order not in (None, "tested", "public"):
            raise SettingsError(f"the setting order cannot be {order!r}: give tested, public")
        if model.folder is None:
            return Release._of(model.save(Path(folder), shuffle, order == "public"))
        if shuffle or order is not None:
            raise SettingsError(
                "the model was trained into a folder, and so was the order of its nodes decided: leave shuffle and "
                "order out"
            )
        import shutil

        target = Path(folder)
        if target.exists() and any(target.iterdir()):
            raise DataError(f"{target}: the folder is not empty; name another folder")
        shutil.copytree(model.folder, target, dirs_exist_ok=True)
        return Release(target)

    @property
    def release_(self) -> Release:
        """The release that ``fit(folder=...)`` left."""
        if self._fitted().folder is None:
            raise DataError("this model is in memory only: save it first")
        return Release._of(self._model)

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_model"):
            raise TypeError(
                "a fitted model is not pickled, as that would carry private rows: use save(folder) and "
                "progap.Release(folder)"
            )
        return self.__dict__

    def _repr_html_(self) -> str:
        if not hasattr(self, "_model"):
            return f"<code>{html.escape(repr(self))}</code>"
        return f"<div><code>{html.escape(repr(self))}</code>{self.guarantee_._repr_html_()}</div>"


def resume(
    graph: Graph, folder: str | os.PathLike[str], *, progress: bool | Callable[[Any], Any] | None = None
) -> Release:
    """Resumes an interrupted run in a folder, on the graph that it began with. Nothing is asked or charged a second
    time."""
    callback = _callback(progress)
    try:
        return Release._of(_progap.resume(as_graph(graph)._data, Path(folder), callback))
    finally:
        if callback is not None:
            callback.close()


def _is_array(value: Any) -> bool:
    """Whether this is an array of whatever library, or a list: rows, not a graph."""
    listed = isinstance(value, (list, tuple)) or hasattr(value, "__array__")
    return listed or _arrays.is_tensor(value) or _arrays.is_sparse(value)


def _nodes(X: Any, nodes: int) -> np.ndarray:
    array = _arrays.as_array(X, "X")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"X has the shape {array.shape}; give the positions of nodes of the graph, such as graph.nodes")
    if array.dtype == bool:
        return np.flatnonzero(_arrays.chosen_nodes(array, nodes, "X"))
    chosen = _arrays.whole_numbers(array, "X")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= nodes):
        wrong = chosen[(chosen < 0) | (chosen >= nodes)][0]
        raise DataError(f"X: the index {wrong} is outside 0..{nodes}; indices count nodes from 0")
    return chosen


def _check_labels(graph: Graph, nodes: np.ndarray, y: Any) -> None:
    """What is trained on are the labels of the graph: others, such as those that a permutation test has shuffled, would
    not be heard."""
    given = _arrays.as_array(y, "y").ravel()
    if len(given) != len(nodes):
        raise DataError(f"X has {len(nodes)} nodes and y has {len(given)} labels; give one label for each node")
    other = np.flatnonzero(~_alike(graph.y[nodes], given))
    if other.size:
        at = int(other[0])
        raise DataError(
            f"y has other labels than the graph: {given[at]!s} and not {graph.y[nodes[at]]!s} for node "
            f"{int(nodes[at])}; a graph's labels are those it was made with"
        )


def _alike(labels: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Where labels are the same: as numbers where all are numbers, else as text."""
    plain = np.array(labels.tolist())
    if plain.dtype.kind in "biuf" and given.dtype.kind in "biuf":
        return plain == given
    return plain.astype(str) == given.astype(str)


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}; give a whole number from 0")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    raise ValueError(
        f"random_state is a {type(random_state).__name__}; give a whole number, or None for a private model"
    )


def _callback(progress: Any) -> _Callback | None:
    if progress is None or progress is False:
        return None
    if callable(progress):
        return _Callback(progress)
    if progress is True:
        return _Bar()
    raise TypeError(f"progress is {progress!r}; give True or a function")


class _Callback:
    """A callback for every epoch, and whether it was called."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.called = False
        self._function = function

    def __call__(self, progress: Any) -> Any:
        self.called = True
        return self._function(progress)

    def close(self) -> None:
        pass


class _Bar(_Callback):
    """A bar of tqdm over all epochs of all stages."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        super().__init__(self._show)
        self._make: Any = tqdm
        self._bar: Any = None

    def _show(self, progress: Any) -> None:
        if self._bar is None:
            self._bar = self._make(total=progress.stages * progress.epochs, unit="epoch")
        self._bar.set_postfix({"stage": progress.stage + 1, "val": f"{progress.val_accuracy:.3f}"}, refresh=False)
        self._bar.update(progress.stage * progress.epochs + progress.epoch - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _not_fitted(message: str) -> Exception:
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return AttributeError(message)
    return NotFittedError(message)


def _document() -> None:
    """Gives the class the signature and the documentation that follow from the declarations."""
    lines = [
        "A node classifier with a differential-privacy guarantee: every method and level of the command, in "
        "scikit-learn's words.",
        "",
        "    >>> import progap",
        '    >>> model = progap.ProGAP(level="edge", epsilon=1.0).fit(progap.load("demo"))',
        "    >>> model.guarantee_.epsilon <= 1.0",
        "    True",
        "    >>> model.predict([0, 1]).shape, model.predict_proba().shape",
        "    ((2,), (20000, 6))",
        "",
        "    What is not given has the default of the method at the level.",
        "",
        "    Parameters",
        "    ----------",
    ]
    for name, about in SETTINGS.items():
        kind = " | ".join(repr(choice) for choice, _ in about["choices"]) if about["choices"] else about["kind"]
        where = {"edge": "At level edge: ", "node": "At level node: "}.get(about["scope"], "")
        said = about["help"][0].lower() + about["help"][1:] if where else about["help"]
        lines.append(f"    {name} : {kind}, default {about['default']}")
        lines.append(f"        {where}{said}")
    for name, (kind, said) in OTHERS.items():
        lines += [f"    {name} : {kind}", f"        {said}"]
    lines += [
        "",
        "    Attributes",
        "    ----------",
        "    classes_ : the classes, in the order of the columns of ``predict_proba``",
        "    guarantee_ : the :class:`Guarantee`: a sentence, ``epsilon``, ``delta``, ``unit``",
        "    settings_, metrics_ : the settings with everything decided; accuracies and the history of training",
        "    graph_, n_features_in_ : the graph that was trained on; its number of features",
        "    ",
    ]
    ProGAP.__doc__ = "\n".join(lines)
    keyword = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in PARAMETERS]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ProGAP.__init__.__signature__ = inspect.Signature([itself, *keyword])  # type: ignore[attr-defined]
    ProGAP.__init__.__doc__ = "Takes parameters by name; nothing is checked before ``fit``."


_document()
