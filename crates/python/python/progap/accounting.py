"""The accountant alone: what queries cost, and how much noise a budget needs.

Every answer is an upper bound, rounding included, and says which accountant gave it.

>>> from progap import Event, accounting
>>> training = Event.gaussian(1.2).poisson_sampled(0.01).repeated(1000)
>>> bound = accounting.epsilon(training, delta=1e-6)
>>> round(float(bound), 2), bound.accountant
(1.5, 'pld')
>>> noise = accounting.calibrate(Event.gaussian(1.0).repeated(3), epsilon=1.0, delta=1e-7)
>>> round(noise.multiplier, 2)
8.1
"""

from __future__ import annotations

from typing import Iterable, NamedTuple

from . import _progap
from ._progap import Bound, Event

__all__ = ["Bound", "Calibration", "Event", "accountants", "calibrate", "curve", "delta", "epsilon"]


class Calibration(NamedTuple):
    """Noise that meets a target."""

    #: By what the noise of the event was multiplied, rounded up.
    multiplier: float
    #: The event with that noise.
    event: Event
    #: What it costs: at most the target.
    bound: Bound


def accountants() -> list[str]:
    """The names of all accountants, tightest first.

    >>> accountants()
    ['gdp', 'pld', 'rdp', 'zcdp', 'theorem']
    """
    return _progap.accountants()


def epsilon(event: Event, *, delta: float, accountant: str = "best") -> Bound:
    """The smallest epsilon that an accountant can prove at a delta."""
    return _progap.epsilon(event, delta, accountant)


def delta(event: Event, *, epsilon: float, accountant: str = "best") -> Bound:
    """The smallest delta that an accountant can prove at an epsilon."""
    return _progap.delta(event, epsilon, accountant)


def calibrate(event: Event, *, epsilon: float, delta: float, accountant: str = "best") -> Calibration:
    """The least multiple of an event's noise that stays within a budget."""
    return Calibration(*_progap.calibrate(event, epsilon, delta, accountant))


def curve(event: Event, *, deltas: Iterable[float], accountant: str = "best") -> list[tuple[float, float]]:
    """Epsilon at each of several deltas.

    >>> [round(epsilon, 2) for _, epsilon in curve(Event.gaussian(4.0), deltas=[1e-5, 1e-7])]
    [0.93, 1.18]
    """
    return [(delta, epsilon(event, delta=delta, accountant=accountant).value) for delta in deltas]
