"""Threads, forks and callbacks: nobody waits for a thread that is busy, gone, or waiting for him."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import progap
from conftest import FAST, network

SEEDED = {"method": "progap-labels", "level": "none", "random_state": 1}


def ended(child: int, seconds: float = 60) -> int:
    """The exit code of a child; one that does not end fails the test."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child waits for threads that it does not have")


def forked(work) -> int:
    """A child that does some work, and ends with 0 where it says True."""
    with warnings.catch_warnings():
        # Python itself warns of forks beside threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 3)
        except BaseException:
            os._exit(4)
    return child


def test_other_threads_run_while_it_trains(graph):
    ticks = []

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    done = threading.Event()
    counter = threading.Thread(target=count)
    counter.start()
    progap.ProGAP(method="progap-labels", level="none", epochs=300).fit(graph)
    done.set()
    counter.join()
    assert len(ticks) > 5


def test_fits_at_once_from_threads():
    """On graphs that nobody has looked at yet: what is found out about them is found out by several at once."""
    for round in range(5):
        graph = progap.Graph(**network(seed=round))
        models = {}

        def fit(number):
            models[number] = (
                progap.ProGAP(method="progap-labels", random_state=number % 2, epochs=3).fit(graph).predict_proba()
            )

        threads = [threading.Thread(target=fit, args=(number,)) for number in range(6)]
        [thread.start() for thread in threads]
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive(), "a fit waits for another one"
        for number in range(6):
            np.testing.assert_array_equal(models[number], models[number % 2])


def test_private_fits_at_once_are_all_counted(graph):
    threads = [threading.Thread(target=lambda: progap.ProGAP(**FAST).fit(graph)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert progap.spent(graph)["edge-undirected"]["fits"] == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_has_threads_of_its_own(graph):
    expected = progap.ProGAP(epochs=2, **SEEDED).fit(graph).predict_proba()
    same = lambda: (progap.ProGAP(epochs=2, **SEEDED).fit(graph).predict_proba() == expected).all()  # noqa: E731
    assert ended(forked(same)) == 0 and same()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_in_the_middle_of_fits(arrays):
    """While other threads train, look into the same graphs and count their budget."""
    expected = progap.ProGAP(epochs=2, **SEEDED).fit(progap.Graph(**arrays)).predict_proba()
    stop = threading.Event()
    shared = [progap.Graph(**arrays)]

    def busy():
        while not stop.is_set():
            shared[0] = progap.Graph(**arrays)
            progap.ProGAP(method="progap-labels", epochs=3).fit(shared[0])

    threads = [threading.Thread(target=busy) for _ in range(2)]
    [thread.start() for thread in threads]
    try:
        for _ in range(15):
            time.sleep(0.02)
            graph = shared[0]

            def work():
                found = progap.ProGAP(epochs=2, **SEEDED).fit(graph).predict_proba()
                progap.ProGAP(**FAST).fit(graph)
                return (found == expected).all() and progap.spent(graph)

            assert ended(forked(work)) == 0
    finally:
        stop.set()
        [thread.join() for thread in threads]


#: With one thread alone, which trains and must not be waited for by what its own callback asks for.
NESTED = """
import progap
from conftest import FAST, network
graph = progap.Graph(**network())
other = progap.ProGAP(level="none", **FAST).fit(graph)
heard = []

def look(progress):
    heard.append(other.predict_proba().shape)
    if len(heard) == 2:
        heard.append(progap.ProGAP(level="none", progress=lambda p: None, **FAST).fit(graph).score())

progap.ProGAP(level="none", progress=look, **FAST).fit(graph)
assert len(heard) > 3
print("done")
"""


@pytest.mark.parametrize("cores", ["1", "2"])
def test_a_callback_may_ask_for_more(cores):
    said = subprocess.run(
        [sys.executable, "-c", NESTED],
        env={**os.environ, "RAYON_NUM_THREADS": cores},
        cwd=os.path.dirname(__file__),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.stdout.strip() == "done", said.stderr


def test_ctrl_c_in_the_middle_of_threads(graph):
    """Only the main thread hears it; the others end by themselves."""
    done = []
    thread = threading.Thread(target=lambda: done.append(progap.ProGAP(level="none", **FAST).fit(graph)))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        progap.ProGAP(method="progap-labels", level="none", epochs=100_000).fit(graph)
    thread.join(60)
    assert done and done[0].predict().shape == (300,)
