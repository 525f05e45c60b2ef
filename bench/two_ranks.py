#!/usr/bin/env python3
"""Two ranks of one thread beside one process of two threads: elapsed time and peak memory, the table of
docs/machines.md.

    cargo build --release --features mpi && python3 bench/two_ranks.py [--folder DIR] [--nodes 1100000] [--edges 85000000] [--times 3]

One after the other, in turns; the median of each is compared. Releases must be the same to the byte. Needs Open MPI,
and a machine with two idle cores. Only the standard library is needed.
"""

import argparse
import filecmp
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGAP = Path(os.environ.get("PROGAP", ROOT / "target" / "release" / "progap"))
MPIRUN = ["mpirun", "-n", "2", "--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
RUNS = {
    "edge, `--epochs 5`": ["--level", "edge", "--epochs", 5],
    "node": ["--level", "node", "--epsilon", 8],
    "node, `--epochs 5`": ["--level", "node", "--epsilon", 8, "--epochs", 5],
}
# Measures its child, and says so on a line of its own.
MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, flush=True)
sys.exit(code)
"""


def run(command):
    """Elapsed seconds of a command, and the peak memory of each process in MB."""
    began = time.monotonic()
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    elapsed = time.monotonic() - began
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return elapsed, [int(line.split()[1]) / 1024 for line in done.stdout.splitlines() if line.startswith("peak ")]


def same(one, other):
    """Whether two releases have the same files but for what they cost."""
    compared = filecmp.dircmp(one, other, ignore=["cost.json"])

    def equal(compared):
        files = filecmp.cmpfiles(compared.left, compared.right, compared.common_files, shallow=False)
        alone = compared.left_only + compared.right_only + files[1] + files[2]
        return not alone and all(equal(below) for below in compared.subdirs.values())

    return equal(compared)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--folder", type=Path, help="where the graph and releases are made; a temporary one otherwise")
    asked.add_argument("--nodes", type=int, default=1_100_000)
    asked.add_argument("--edges", type=int, default=85_000_000)
    asked.add_argument("--times", type=int, default=3)
    asked = asked.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        folder = Path(folder)
        data = folder / "graph.progap"
        subprocess.run(
            [
                PROGAP,
                "data",
                "synth",
                data,
                "--nodes",
                str(asked.nodes),
                "--edges",
                str(asked.edges),
                "--communities",
                "100",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        print(
            "| level | one process, s | two ranks, s | time, limit 1.25 | memory of one process, MB | of the ranks, "
            "MB | share, limit 0.6 |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|")
        for name, settings in RUNS.items():
            times, peaks = {1: [], 2: []}, {1: [0], 2: [0, 0]}
            for _ in range(asked.times):
                for ranks in (1, 2):
                    out = folder / f"release-{ranks}"
                    shutil.rmtree(out, ignore_errors=True)
                    start = [] if ranks == 1 else MPIRUN
                    train = [
                        PROGAP,
                        "train",
                        data,
                        "--method",
                        "progap-labels",
                        "--seed",
                        1,
                        "--quiet",
                        "--threads",
                        2 // ranks,
                        "--out",
                        out,
                        *([] if "none" in settings else ["--order", "public"]),
                        *settings,
                    ]
                    elapsed, found = run([*start, "python3", "-c", MEASURED, *train])
                    times[ranks].append(elapsed)
                    peaks[ranks] = [max(pair) for pair in zip(peaks[ranks], sorted(found))]
            if not same(folder / "release-1", folder / "release-2"):
                raise SystemExit(f"{name}: the releases differ")
            one, two = statistics.median(times[1]), statistics.median(times[2])
            share = max(peaks[2]) / peaks[1][0]
            print(
                f"| {name} | {one:.1f} | {two:.1f} | {two / one:.2f} | {peaks[1][0]:.0f} | "
                f"{' and '.join(f'{peak:.0f}' for peak in peaks[2])} | {share:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
