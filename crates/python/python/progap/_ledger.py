"""Ledgers: the budget of a data set over many runs, processes and machines."""

from __future__ import annotations

import html
import json
import os
import warnings
from pathlib import Path
from typing import Any, Iterable

from . import _progap
from ._errors import BudgetWarning, SettingsError
from ._graph import Graph


class Ledger:
    """A file that keeps budgets, and refuses what exceeds them. It is made where it is not there.

    >>> import progap, tempfile
    >>> ledger = progap.Ledger(tempfile.mkdtemp() + "/budget.db")
    >>> g = progap.load("demo")
    >>> ledger.register(g, epsilon=1.2, delta=1e-7)
    >>> model = progap.ProGAP(epsilon=1.0, ledger=ledger).fit(g)
    >>> progap.ProGAP(epsilon=1.0, ledger=ledger).fit(g)
    Traceback (most recent call last):
    ...
    progap.LedgerError: ...
    >>> ledger.status()[0]["runs"]
    1
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _progap.ledger_open(self.path)

    def register(
        self,
        graph: Graph,
        *,
        epsilon: float,
        delta: float,
        name: str | None = None,
        unit: str | Iterable[str] | None = None,
        same_people: bool | None = None,
        reason: str | None = None,
        rows: str | None = None,
    ) -> None:
        """Gives a data set a budget: for what :class:`ProGAP` protects by default, or for the unit or units that are
        given (``"edge"``, ``"edge-undirected"``, ``"node"``). The ledger keeps keyed sketches of ids, edges and rows,
        by which it knows the same people again, in any order and with any label: it refuses them a second budget under
        another name. ``same_people=False`` says that these are other people, for a ``reason`` that is recorded.
        ``rows="public"`` says that features and labels are public: fits at edge level, which show them, are accepted
        beside a budget for nodes, and not counted in it."""
        if unit is None:
            unit = "edge-undirected" if graph.undirected else "edge"
        units = [unit] if isinstance(unit, str) else list(unit)
        if same_people is not None and same_people is not False:
            raise SettingsError("same_people is False, for people who are not those of another budget, or is left out")
        if (same_people is False) != (reason is not None):
            raise SettingsError("same_people=False and a reason belong together: the reason is recorded")
        if rows not in (None, "public"):
            raise SettingsError(f'rows is {rows!r}, but must be "public", or left out')
        warning = _progap.ledger_register(
            self.path, graph._data, name or graph.name, units, epsilon, delta, reason, rows == "public"
        )
        if warning is not None:
            warnings.warn(warning, BudgetWarning, stacklevel=2)

    def set_public_rows(self, name: str, *, reason: str) -> None:
        """States that features and labels of a data set are public, for a reason that is written down: fits at edge
        level, which show them, are then accepted beside a budget for nodes, and not counted in it."""
        _progap.ledger_set_public_rows(self.path, name, reason)

    def set_budget(self, name: str, *, unit: str, epsilon: float, delta: float, reason: str) -> None:
        """Changes a budget, for a reason that is written down. One below what is spent is refused."""
        _progap.ledger_set_budget(self.path, name, unit, epsilon, delta, reason)

    def status(self) -> list[dict[str, Any]]:
        """Where each data set stands: name, unit, epsilon, delta, spent, left, runs."""
        return json.loads(_progap.ledger_status(self.path))

    def runs(self, name: str, unit: str) -> list[dict[str, Any]]:
        """All runs that were charged, oldest first."""
        return json.loads(_progap.ledger_runs(self.path, name, unit))

    def check(self, against: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
        """Verifies every seal and every figure, and that the ledger holds the receipts that are given, such as those of
        :meth:`runs`: one that was replaced by an older copy does not hold later ones. Raises :class:`LedgerError` at
        the first that is wrong."""
        return json.loads(_progap.ledger_check(self.path, json.dumps(list(against))))

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(s['name'])}</td><td>{s['unit']}</td><td>{s['epsilon']:g}</td><td>{s['delta']:g}</td>"
            f"<td>{s['spent']:.4f}</td><td>{s['left']:.4f}</td><td>{s['runs']}</td></tr>"
            for s in self.status()
        )
        head = "".join(f"<th>{name}</th>" for name in ("data", "unit", "epsilon", "delta", "spent", "left", "runs"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
