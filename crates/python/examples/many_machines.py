"""Experiments over many machines with Dask: comparisons without privacy, then private fits that one ledger counts.

    python crates/python/examples/many_machines.py            # two workers on this machine
    python crates/python/examples/many_machines.py tcp://scheduler:8786 /shared/graph.progap /shared/runs

Every worker must see the same folder. The graph goes as a file, which each worker maps; the ledger is asked before any
noisy value is used, whichever worker runs the fit.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from dask.distributed import Client, LocalCluster

import progap


def compare(graph: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """One run of a comparison: seeded, so that anyone can repeat it, and not private."""
    model = progap.ProGAP(level="none", random_state=seed, **settings).fit(progap.load(graph))
    return {**settings, "seed": seed, "test": model.score(), "process": os.getpid()}


def publish(graph: str, settings: dict[str, Any], ledger: str, folder: str) -> dict[str, Any]:
    """One private fit, charged to the ledger. Dask runs a task again where its worker was lost: the folder has the run
    that was begun, finished or not, and nothing is asked or charged twice."""
    data = progap.load(graph)
    if not Path(folder).exists():
        release = progap.ProGAP(ledger=ledger, **settings).fit(data, folder=folder).release_
    else:
        try:
            release = progap.Release(folder)
        except progap.ReleaseError:
            release = progap.resume(data, folder)
    guarantee = release.verify().guarantee
    return {"folder": folder, "epsilon": guarantee.epsilon, "process": os.getpid()}


def comparisons(client: Client, graph: str, variants: list[dict[str, Any]], seeds: range) -> list[dict[str, Any]]:
    """All runs of a comparison, over all workers."""
    return client.gather([client.submit(compare, graph, variant, seed) for variant in variants for seed in seeds])


def releases(
    client: Client, graph: str, variants: list[dict[str, Any]], ledger: str, out: str
) -> list[dict[str, Any] | progap.LedgerError]:
    """A private release of each variant; what the ledger refuses comes back as its error."""
    # A fit is no function of its arguments: the same one twice is two fits.
    runs = [
        client.submit(publish, graph, variant, ledger, f"{out}/release-{number}", pure=False)
        for number, variant in enumerate(variants)
    ]
    found: list[dict[str, Any] | progap.LedgerError] = []
    for run in runs:
        try:
            found.append(run.result())
        except progap.LedgerError as refused:
            found.append(refused)
    return found


def main(client: Client, graph: str, out: str) -> None:
    for run in comparisons(client, graph, [{"method": "progap-labels", "depth": depth} for depth in (1, 2)], range(2)):
        print(f"depth {run['depth']}, seed {run['seed']}: {run['test']:.1%}, by process {run['process']}")
    budget = progap.Ledger(f"{out}/budget.db")
    budget.register(progap.load(graph), epsilon=1.5, delta=1e-6)
    for run in releases(client, graph, [{"epsilon": 1.0}] * 3, str(budget.path), out):
        print(run)
    print(budget)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        main(Client(sys.argv[1]), sys.argv[2], sys.argv[3])
    else:
        # One core for each worker: fits take all cores that they see.
        with (
            tempfile.TemporaryDirectory() as here,
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, env={"RAYON_NUM_THREADS": "1"}
            ) as cluster,
            Client(cluster) as client,
        ):
            progap.load("demo").save(f"{here}/demo.progap")
            main(client, f"{here}/demo.progap", here)
