"""The accountant beside Google's dp-accounting, on the same trees: do they agree, and how long do they take?

    python crates/python/tests/compare_accounting.py

Both compute privacy loss distributions; exact answers of ours for Gaussians alone are compared with theirs, too.
Epsilon of ours is an upper bound, rounding included, and theirs is pessimistic on its grid: they may differ by what the
grids add.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, NamedTuple

import dp_accounting
from dp_accounting.pld import PLDAccountant

from progap import Event, accounting


class Case(NamedTuple):
    name: str
    ours: Event
    theirs: Any
    delta: float


class Row(NamedTuple):
    name: str
    ours: float
    theirs: float
    our_seconds: float
    their_seconds: float

    @property
    def agrees(self) -> bool:
        # dp-accounting rounds losses up to a grid of 1e-4, at each of which composition adds a little.
        return abs(self.ours - self.theirs) <= 2e-3 * max(1.0, self.theirs)


def cases() -> list[Case]:
    gaussian = dp_accounting.GaussianDpEvent
    sampled = lambda rate, noise: dp_accounting.PoissonSampledDpEvent(rate, gaussian(noise))  # noqa: E731
    many = dp_accounting.SelfComposedDpEvent
    return [
        Case("one sum", Event.gaussian(4.0), gaussian(4.0), 1e-6),
        Case("five sums", Event.gaussian(8.0) * 5, many(gaussian(8.0), 5), 1e-7),
        Case("ten of Laplace", Event.laplace(10.0) * 10, many(dp_accounting.LaplaceDpEvent(10.0), 10), 1e-6),
        Case(
            "1000 steps at 1 %", Event.gaussian(1.2).poisson_sampled(0.01) * 1000, many(sampled(0.01, 1.2), 1000), 1e-6
        ),
        Case(
            "774 steps at 1.3 %", Event.gaussian(1.5).poisson_sampled(0.013) * 774, many(sampled(0.013, 1.5), 774), 1e-5
        ),
        Case(
            "10,000 steps at 0.1 %",
            Event.gaussian(0.9).poisson_sampled(0.001) * 10_000,
            many(sampled(0.001, 0.9), 10_000),
            1e-6,
        ),
        Case(
            "sums and steps",
            (Event.gaussian(6.0) * 2) + (Event.gaussian(2.0).poisson_sampled(0.02) * 300),
            dp_accounting.ComposedDpEvent([many(gaussian(6.0), 2), many(sampled(0.02, 2.0), 300)]),
            1e-6,
        ),
    ]


def timed(ask: Callable[[], float], repeats: int) -> tuple[float, float]:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = ask()
        seconds.append(time.perf_counter() - start)
    return answer, min(seconds)


def compare(repeats: int = 3) -> list[Row]:
    rows = []
    for name, ours, theirs, delta in cases():
        answer, our_seconds = timed(lambda: accounting.epsilon(ours, delta=delta).value, repeats)
        other, their_seconds = timed(lambda: PLDAccountant().compose(theirs).get_epsilon(delta), repeats)
        rows.append(Row(name, answer, other, our_seconds, their_seconds))
    return rows


def median_ratio(rows: list[Row]) -> float:
    return statistics.median(row.their_seconds / row.our_seconds for row in rows)


if __name__ == "__main__":
    found = compare()
    print(f"{'tree':24}{'epsilon':>12}{'theirs':>12}{'ms':>10}{'theirs':>10}{'ratio':>8}")
    for row in found:
        times = (
            f"{1e3 * row.our_seconds:10.2f}{1e3 * row.their_seconds:10.1f}{row.their_seconds / row.our_seconds:8.0f}"
        )
        print(f"{row.name:24}{row.ours:12.6f}{row.theirs:12.6f}{times}{'' if row.agrees else '  DIFFERS'}")
    print(f"median: {median_ratio(found):.0f} times as fast")
