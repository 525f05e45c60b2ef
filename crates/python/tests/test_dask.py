"""Fits over the workers of a real Dask cluster: results are those of one process, and one ledger counts for all of
them."""

import subprocess
import sys
from pathlib import Path

import pytest

import progap
from conftest import FAST

distributed = pytest.importorskip("distributed")
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import many_machines  # noqa: E402


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    # Workers find the recipe as they find any module of the user's.
    paths = {"PYTHONPATH": str(Path(many_machines.__file__).parent), "RAYON_NUM_THREADS": "1"}
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env=paths,
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_comparisons_are_those_of_one_process(client, graph, tmp_path):
    file = str(tmp_path / "small.progap")
    graph.save(file)
    variants = [{**FAST, "depth": 1}, {**FAST, "depth": 2}]
    found = many_machines.comparisons(client, file, variants, range(3))
    assert len(found) == 6 and len({run["process"] for run in found}) == 2
    for run in found:
        here = many_machines.compare(file, {name: run[name] for name in ("method", "epochs", "depth")}, run["seed"])
        assert run["test"] == here["test"]


def test_one_ledger_counts_for_all_workers(client, graph, tmp_path):
    file, ledger = str(tmp_path / "small.progap"), progap.Ledger(tmp_path / "budget.db")
    graph.save(file)
    once = progap.ProGAP(epsilon=0.5, **FAST).plan(graph)
    together = [progap.accounting.epsilon(once["event"] * fits, delta=1e-5).value for fits in (3, 4)]
    ledger.register(progap.load(file), epsilon=sum(together) / 2, delta=1e-5)
    variants = [{"epsilon": 0.5, **FAST}] * 5
    found = many_machines.releases(client, file, variants, str(ledger.path), str(tmp_path))
    refused = [run for run in found if isinstance(run, progap.LedgerError)]
    assert len(refused) == 2 and "this run is refused" in str(refused[0])
    assert ledger.check()["runs"] == 3 and ledger.status()[0]["spent"] <= sum(together) / 2
    made = [run for run in found if isinstance(run, dict)]
    assert len({run["process"] for run in made}) == 2
    assert all(progap.Release(run["folder"]).verify().guarantee.private for run in made)
    # A task that Dask runs again takes up what its first worker left, and is not charged again.
    again = client.submit(many_machines.publish, file, variants[0], str(ledger.path), made[0]["folder"], pure=False)
    assert again.result()["folder"] == made[0]["folder"] and ledger.check()["runs"] == 3


def test_a_task_that_runs_again_is_charged_once(client, graph, tmp_path):
    file, ledger = str(tmp_path / "small.progap"), progap.Ledger(tmp_path / "budget.db")
    graph.save(file)
    ledger.register(progap.load(file), epsilon=1.0, delta=1e-5)
    folder = tmp_path / "release"
    with pytest.raises(progap.Stopped):
        progap.ProGAP(epsilon=1.0, ledger=ledger, progress=lambda p: False, **FAST).fit(
            progap.load(file), folder=folder
        )
    run = client.submit(
        many_machines.publish, file, {"epsilon": 1.0, **FAST}, str(ledger.path), str(folder), pure=False
    ).result()
    assert run["folder"] == str(folder) and ledger.check()["runs"] == 1


def test_graphs_and_parameters_travel(client, graph):
    model = progap.ProGAP(level="none", random_state=1, **FAST)
    there = client.submit(lambda model, graph: model.fit(graph).predict().tolist(), model, graph).result()
    assert there == model.fit(graph).predict().tolist()


def test_the_example_runs():
    said = subprocess.run([sys.executable, many_machines.__file__], capture_output=True, text=True, timeout=600)
    assert said.returncode == 0, said.stderr
    assert (
        said.stdout.count("by process") == 4
        and "this run is refused" in said.stdout
        and said.stdout.count("'epsilon'") == 2
    )
