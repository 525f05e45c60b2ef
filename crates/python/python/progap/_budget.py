"""How much budget this process has spent on which data, for fits that no ledger counts."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

from . import _progap
from ._errors import BudgetWarning

_lock = threading.Lock()
#: For the edges of each graph and each unit: the events that were paid for, and the largest delta among them.
_spent: dict[tuple[str, str], list[tuple[_progap.Event, float]]] = {}


def _after_fork() -> None:
    """A thread that held the lock is not there in a child."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def count(edges: str, unit: str, event: _progap.Event, delta: float, caller: int) -> None:
    """Counts a private fit, and warns from the second one on the same data, at the line of a caller so many calls above."""
    with _lock:
        fits = _spent.setdefault((edges, unit), [])
        fits.append((event, delta))
        fits = list(fits)
    if len(fits) > 1:
        warnings.warn(_words(fits, unit), BudgetWarning, stacklevel=1 + caller)


def _words(fits: list[tuple[_progap.Event, float]], unit: str) -> str:
    delta = max(delta for _, delta in fits) or 1e-9
    try:
        epsilon = f"epsilon {_progap.epsilon(_progap.Event.composed([event for event, _ in fits]), delta, 'best').value:.4f}"
    except ValueError:
        epsilon = "more than an accountant can say"
    return (
        f"this is private fit number {len(fits)} on the same edges in this process: whoever sees all of them has {epsilon} "
        f"at delta {delta:g} (unit {unit}), not the epsilon of one; ledger= keeps a budget and refuses what exceeds it"
    )


def spent(graph: Any) -> dict[str, dict[str, float]]:
    """What private fits without a ledger have cost on the edges of a graph in this process, by unit: how many fits, and the epsilon of
    all of them together at the largest of their deltas.

    >>> import progap
    >>> progap.spent(progap.Graph(edge_index=[[0, 1], [1, 0]], y=[0, 1], train_mask=[0, 1]))
    {}
    """
    if not hasattr(graph, "_data"):
        raise TypeError(f"this is a {type(graph).__name__}; give a progap.Graph")
    edges = graph._data.edges_fingerprint()
    with _lock:
        found = {unit: list(fits) for (key, unit), fits in _spent.items() if key == edges}
    costs = {}
    for unit, fits in found.items():
        delta = max(delta for _, delta in fits) or 1e-9
        together = _progap.Event.composed([event for event, _ in fits])
        costs[unit] = {"fits": len(fits), "epsilon": _progap.epsilon(together, delta, "best").value, "delta": delta}
    return costs
