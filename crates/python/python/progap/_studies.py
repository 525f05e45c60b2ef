"""Audits, reports and experiments."""

from __future__ import annotations

import html
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

from . import _progap
from ._errors import DataError, ProGAPError, SettingsError
from ._estimator import ProGAP, _callback
from ._graph import Graph
from ._release import Release, table
from ._sources import as_graph


class Audit:
    """What came of an audit: ``refuted``, ``findings`` and attacks. It comes from private data without noise, for the
    data owner alone."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = dict(result)
        self.refuted: bool = result["refuted"]
        self.findings: list[dict[str, Any]] = result["findings"]
        self.link_inference: list[dict[str, Any]] = result["link_inference"]
        self.membership_inference: dict[str, Any] | None = result["membership_inference"]

    def __str__(self) -> str:
        closest = max(
            self.findings, key=lambda finding: finding["measured"] - (finding["claimed"] or 0.0), default=None
        )
        if closest is None:
            return "no claim was tested"
        claimed = "nothing is claimed" if closest["claimed"] is None else f"claimed at most {closest['claimed']:.2f}"
        verdict = "THE CLAIM IS WRONG" if self.refuted else "nothing found"
        measured = f"measured at least {closest['measured']:.2f} with {self.result['confidence']:.0%} confidence"
        return f"{claimed}, {measured}: {verdict}"

    def __repr__(self) -> str:
        return f"Audit({self})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f['what'])}</td><td>{html.escape(str(f['test']))}</td>"
            f"<td>{f['claimed']}</td><td>{f['measured']:.4f}</td></tr>"
            for f in self.findings
        )
        return (
            f"<div><b>{html.escape(str(self))}</b><table><thead><tr>"
            f"<th>attacked</th><th>test</th><th>claimed</th><th>measured</th>"
            f"</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def audit(
    model: ProGAP | Release | str | os.PathLike[str],
    graph: Graph,
    *,
    parts: str | Sequence[str] = (),
    canaries: int | None = None,
    confidence: float = 0.95,
    progress: bool | Callable[[Any], Any] | None = None,
) -> Audit:
    """Attacks a guarantee by experiment: a lower bound on epsilon beside the one that is claimed, and link and
    membership inference.

    Parameters
    ----------
    model : settings to attack (a ProGAP), or a release of this graph
    graph : the data
    parts : of ``"mechanism"`` (the noise alone), ``"training"`` (whole runs) and ``"attacks"`` (a release); all of them
        if not given
    canaries : in each experiment; as many as are worth their time if not given
    confidence : with which all bounds hold together

    >>> import progap
    >>> found = progap.audit(progap.ProGAP(epsilon=1.0), progap.load("demo"), parts=["mechanism"], canaries=1000)
    >>> found.refuted
    False
    """
    parts = [parts] if isinstance(parts, str) else list(parts)
    unknown = set(parts) - {"mechanism", "training", "attacks"}
    if unknown:
        raise ValueError(f"there is no part {unknown.pop()!r}; give mechanism, training or attacks")
    if not 0.5 < confidence < 1.0:
        raise ValueError(f"the confidence {confidence} is out of range; give 0.5 to 1")
    settings: dict[str, Any] = {}
    published, release = False, None
    if isinstance(model, ProGAP):
        settings, published = model._asked(), model._published()
    else:
        release = (model if isinstance(model, Release) else Release(model))._model
    callback, data = _callback(progress), as_graph(graph)._data
    return Audit(
        json.loads(_progap.audit(data, settings, published, release, parts, canaries, float(confidence), callback))
    )


class Report:
    """A report in a folder: one HTML page, with figures and tables beside it. Jupyter shows the page."""

    def __init__(self, page: Path) -> None:
        self.page = page

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.page.parent

    def tables(self) -> dict[str, Path]:
        """The tables, as CSV files by name."""
        return {file.stem: file for file in sorted((self.folder / "tables").glob("*.csv"))}

    def figures(self) -> dict[str, Path]:
        """The figures, as SVG files by name."""
        return {file.stem: file for file in sorted((self.folder / "figures").glob("*.svg"))}

    def __repr__(self) -> str:
        return f"Report({str(self.page)!r})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page.read_text())}" style="width:100%;height:40em;border:0"></iframe>'
        )


def report(
    release: Release | ProGAP | str | os.PathLike[str], out: str | os.PathLike[str], *, public: bool = False
) -> Report:
    """Writes a report of a release, or of the folder of an experiment: one HTML page that needs no network, with
    figures and tables. With ``public`` nothing is on it but what follows from public inputs and noisy answers.

    >>> import progap, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> release = progap.ProGAP(epsilon=1.0).fit(progap.load("demo")).save(folder + "/release")
    >>> progap.report(release, folder + "/report").page.name
    'report.html'
    """
    if isinstance(release, ProGAP):
        release = release.release_
    folder = release.folder if isinstance(release, Release) else Path(release)
    return Report(_progap.report(folder, Path(out), public))


class Experiment:
    """What came of an experiment: ``cells``, one for each data set, method, level and budget, and a report."""

    def __init__(self, end: Mapping[str, Any]) -> None:
        self.cells: list[dict[str, Any]] = end["cells"]
        self.report = Report(Path(end["report"]))

    def to_frame(self, *, library: str | None = None) -> Any:
        """The cells as a table: data, method, level, epsilon, what varies, the mean test accuracy and its interval."""
        varied = sorted({name for cell in self.cells for name in cell["variant"]})
        columns: dict[str, list[Any]] = {
            name: [cell[name] for cell in self.cells] for name in ("data", "method", "level", "epsilon")
        }
        columns.update(
            {name: [cell["variant"].get(name) for cell in self.cells] for name in varied if name not in columns}
        )
        columns["test"] = [cell["test"] for cell in self.cells]
        for end, name in enumerate(("low", "high")):
            columns[name] = [cell["interval"] and cell["interval"][end] for cell in self.cells]
        columns["runs"] = [cell["runs"] for cell in self.cells]
        return table(columns, library)

    def __repr__(self) -> str:
        return f"Experiment({len(self.cells)} cells, {str(self.report.page)!r})"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def experiment(
    name: str,
    data: Graph | str | Iterable[Graph | str] | None = None,
    *,
    out: str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    methods: Sequence[str] | None = None,
    levels: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    depths: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
    tuning: str | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    progress: Callable[[dict[str, Any]], Any] | None = None,
) -> Experiment:
    """Runs an experiment of the command: ``"table2"`` (methods side by side), ``"tradeoff"`` (accuracy against
    epsilon), ``"depth"``, ``"convergence"``, ``"layerwise"``, ``"ablation"``, ``"labels"`` (accuracy against the share
    of labelled nodes: ``shares``), or ``"custom"``, a comparison of your own that ``file`` describes in TOML. ``data``
    are graphs, paths or names; the data sets of the file, or ``"demo"``, where it is left out. Every run is kept in
    ``out`` as it finishes: the same call goes on where it was stopped. Runs are seeded, so that anyone can repeat them:
    none of them is private, and none is charged.

    ``progress`` is called with each event of the command, a dictionary.
    """
    if (name == "custom") != (file is not None):
        raise SettingsError('the experiment "custom" needs a `file`, and no other has one')
    graphs = [] if data is None else [data] if isinstance(data, (Graph, str)) else list(data)
    with tempfile.TemporaryDirectory(prefix="progap-") as place:
        sources = []
        for number, graph in enumerate(graphs):
            if isinstance(graph, Graph):
                stored = (
                    Path(place)
                    / str(number)
                    / f"{graph.name if graph.name.replace('-', '_').isidentifier() else 'graph'}.progap"
                )
                stored.parent.mkdir()
                graph.save(stored)
                sources.append(str(stored))
            else:
                sources.append(str(graph))
        if any("," in source for source in sources):
            raise DataError("a path with a comma cannot be named in a list of data sets")
        command = [
            sys.executable,
            "-m",
            "progap",
            "experiment",
            name,
            *([] if file is None else [str(file)]),
            "--json",
            "--out",
            str(out),
        ]
        if sources:
            command += ["--data-sets", ",".join(sources)]
        given: dict[str, Any] = {
            "runs": runs,
            "methods": _listed(methods),
            "levels": _listed(levels),
            "epsilons": _listed(epsilons),
            "depths": _listed(depths),
            "shares": _listed(shares),
            "tuning": tuning,
            "preset": preset,
            "jobs": jobs,
        }
        for flag, value in given.items():
            if value is not None:
                command += [f"--{flag}", str(value)]
        for setting, value in (settings or {}).items():
            command += ["--set", f"{setting}={json.dumps(value) if isinstance(value, bool) else value}"]
        return Experiment(_events(command, progress))


def _listed(values: Iterable[Any] | None) -> str | None:
    return None if values is None else ",".join(str(value) for value in values)


def _sentence(words: str) -> str:
    """What a command says of an error, without its hints on how to call it."""
    lines = [line.strip() for line in words.removeprefix("error: ").splitlines()]
    ends = [at for at, line in enumerate(lines) if line.startswith(("Usage:", "For more information"))]
    return "; ".join(line for line in lines[: min(ends, default=len(lines))] if line)


def _events(command: list[str], progress: Callable[[dict[str, Any]], Any] | None) -> dict[str, Any]:
    """Runs the command and gives its last event; what it says on standard error is raised where it fails."""
    end = begun = None
    # Its words go into an exception: without colours.
    plain = {name: value for name, value in os.environ.items() if name not in ("CLICOLOR_FORCE", "FORCE_COLOR")} | {
        "NO_COLOR": "1"
    }
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=plain) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            begun = event = json.loads(line)
            if event.get("event") == "end":
                end = event
            elif progress is not None:
                progress(event)
        process.wait()
        said.seek(0)
        words = said.read().strip()
    if process.returncode != 0 or end is None:
        # What is refused before anything begins is a matter of what was asked for.
        kind = SettingsError if begun is None else ProGAPError
        raise kind(_sentence(words) or f"the command ended with {process.returncode}")
    return end
