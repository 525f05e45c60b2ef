"""The functions of the recipe for many machines, on the workers of a real Ray cluster."""

import sys
from pathlib import Path

import pytest

import progap
from conftest import FAST

ray = pytest.importorskip("ray")
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import many_machines  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    paths = {"PYTHONPATH": str(Path(many_machines.__file__).parent), "RAYON_NUM_THREADS": "1"}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": paths})
    yield
    ray.shutdown()


def test_comparisons_are_those_of_one_process(graph, tmp_path):
    file = str(tmp_path / "small.progap")
    graph.save(file)
    compare = ray.remote(many_machines.compare)
    found = ray.get([compare.remote(file, {**FAST, "depth": 1}, seed) for seed in range(4)])
    for seed, run in enumerate(found):
        assert run["test"] == many_machines.compare(file, {**FAST, "depth": 1}, seed)["test"]


def test_one_ledger_counts_for_all_workers(graph, tmp_path):
    file, ledger = str(tmp_path / "small.progap"), progap.Ledger(tmp_path / "budget.db")
    graph.save(file)
    ledger.register(progap.load(file), epsilon=1.2, delta=1e-5)
    publish = ray.remote(many_machines.publish)
    runs = [
        publish.remote(file, {"epsilon": 1.0, **FAST}, str(ledger.path), str(tmp_path / f"release-{number}"))
        for number in range(3)
    ]
    made, refused = [], []
    for run in runs:
        try:
            made.append(ray.get(run))
        except progap.LedgerError as error:
            refused.append(error)
    assert (len(made), len(refused)) == (1, 2) and "this run is refused" in str(refused[0])
    assert ledger.check()["runs"] == 1
    # A task that is run again takes up what the first left.
    assert (
        ray.get(publish.remote(file, {"epsilon": 1.0, **FAST}, str(ledger.path), made[0]["folder"]))["folder"]
        == made[0]["folder"]
    )
    assert ledger.check()["runs"] == 1
