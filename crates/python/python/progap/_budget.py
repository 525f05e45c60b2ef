"""How much budget this process has spent on which data, for fits that no ledger counts."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, NamedTuple

from . import _progap
from ._errors import BudgetWarning

_lock = threading.Lock()


class _Fit(NamedTuple):
    """A private fit: whose data, in which unit, what it asked of them in each unit that is known, and its delta."""

    people: _progap.Identity
    unit: str
    events: dict[str, _progap.Event]
    delta: float


#: All private fits of this process that no ledger counts.
_fits: list[_Fit] = []


def _after_fork() -> None:
    """A thread that held the lock is not there in a child."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def count(people: _progap.Identity, events: list[tuple[str, str]], delta: float, caller: int) -> None:
    """Counts a private fit, by its events in its own unit and then in others; warns from the second one on data of the
    same people, at the line of a caller so many calls above."""
    fit = _Fit(people, events[0][0], {unit: _progap.Event.from_json(event) for unit, event in events}, delta)
    with _lock:
        fits = [*_of(people), fit]
        _fits.append(fit)
    if len(fits) > 1:
        warnings.warn(_words(fits, fit.unit), BudgetWarning, stacklevel=1 + caller)


def _of(people: _progap.Identity) -> list[_Fit]:
    return [fit for fit in _fits if fit.people.matches(people)]


def _cost(fits: list[_Fit], unit: str) -> tuple[float, float]:
    """Epsilon and delta of all fits that can be counted in a unit."""
    delta = max(fit.delta for fit in fits) or 1e-9
    events = [fit.events[unit] for fit in fits if unit in fit.events]
    return _progap.epsilon(_progap.Event.composed(events), delta, "best").value, delta


def _words(fits: list[_Fit], unit: str) -> str:
    delta = max(fit.delta for fit in fits) or 1e-9
    try:
        epsilon = f"epsilon {_cost(fits, unit)[0]:.4f}"
    except ValueError:
        epsilon = "more than an accountant can say"
    text = (
        f"this is private fit number {len(fits)} on data of the same people in this process: "
        f"together they have {epsilon} at delta {delta:g} (unit {unit}), "
        "not the epsilon of one; ledger= keeps a budget and refuses what exceeds it"
    )
    edges = sum("node" not in fit.events for fit in fits)
    if 0 < edges < len(fits):
        text += (
            f"; {edges} of them at edge level show features and labels in the clear, which those at node level "
            "protect, and no epsilon for nodes counts that"
        )
    return text


def spent(graph: Any) -> dict[str, dict[str, float]]:
    """What private fits without a ledger have cost the people of a graph in this process, by unit: how many fits count
    in it, and the epsilon of all of them together at the largest of their deltas. A fit counts in every unit in which a
    bound of its cost is known: one at edge level in both units of an edge, and not for nodes, as it shows features and
    labels.

    >>> import progap
    >>> progap.spent(progap.Graph(edge_index=[[0, 1], [1, 0]], y=[0, 1], train_mask=[0, 1]))
    {}
    """
    if not hasattr(graph, "_data"):
        raise TypeError(f"this is a {type(graph).__name__}; give a progap.Graph")
    people = graph._data.identity()
    with _lock:
        fits = _of(people)
    costs = {}
    for unit in dict.fromkeys(unit for fit in fits for unit in fit.events):
        epsilon, delta = _cost(fits, unit)
        costs[unit] = {"fits": sum(unit in fit.events for fit in fits), "epsilon": epsilon, "delta": delta}
    return costs
