"""`fit` from NumPy arrays beside the command on a file of the same arrays: processor time and memory, in one run.

    cargo build --release -p progap-cli
    pip install target/wheels/progap-*.whl                     # of `maturin build --release`
    python crates/python/tests/compare_command.py [FOLDER/facebook100/Berkeley13.mat] [--rounds 5]

The two take turns, each run a process of its own, and the least of all rounds counts, because the machine may be busy.
The command's time is that of its whole process, which reads the file and writes a release. Ours is that of `Graph(...)`
and `fit` with the arrays in memory. Its memory is its peak; ours is the peak of the process above what it had before:
interpreter, NumPy and arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import progap

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("PROGAP_SHARED", ROOT.parent / "shared"))
#: At most this many times what the command takes.
LIMITS = {"CPU": 1.1, "memory": 1.3}
LEVELS = {"edge": {"epsilon": 1.0}, "node": {"epsilon": 8.0}}


def memory(field: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fit(file: str, level: str) -> dict[str, float]:
    """Time and memory of a fit on the arrays of a file, in this process."""
    arrays = {name: array for name, array in np.load(file).items()}
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), cpu()
    model = progap.ProGAP(level=level, **LEVELS[level]).fit(progap.Graph(**arrays))
    found = {"CPU": cpu() - start, "memory": memory("VmHWM") - before}
    assert model.guarantee_.private
    return found


def python(file: Path, level: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--fit", str(file), "--level", level]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def command(program: Path, file: Path, level: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        asked = [
            program,
            "train",
            file,
            "--level",
            level,
            "--epsilon",
            LEVELS[level]["epsilon"],
            "--out",
            f"{place}/release",
            "--quiet",
        ]
        child = subprocess.Popen([str(part) for part in asked], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{program} ended with {child.returncode}")
    return {"CPU": used.ru_utime + used.ru_stime, "memory": 1024 * used.ru_maxrss}


def compare(data: Path, program: Path, rounds: int) -> bool:
    held = True
    with tempfile.TemporaryDirectory() as place:
        graph = progap.load(data)
        file = Path(place) / "arrays.npz"
        masks = {part: getattr(graph, part) for part in ("train_mask", "val_mask", "test_mask")}
        np.savez(file, x=graph.x, edge_index=graph.edge_index, y=graph._data.labels(), **masks)
        print("| level | what | command | Python | ratio | limit |\n|---|---|---|---|---|---|")
        for level in LEVELS:
            runs = [(command(program, file, level), python(file, level)) for _ in range(rounds)]
            for what, limit in LIMITS.items():
                theirs, ours = (min(pair[side][what] for pair in runs) for side in (0, 1))
                unit, size = ("s", 1.0) if what == "CPU" else ("MB", 1e6)
                print(
                    f"| {level} | {what} | {theirs / size:.2f} {unit} | {ours / size:.2f} {unit} | "
                    f"{ours / theirs:.2f} | {limit} |"
                )
                held &= ours <= limit * theirs
    return held


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", type=Path, default=SHARED / "data/facebook100/Berkeley13.mat")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/progap")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fit")
    parser.add_argument("--level")
    args = parser.parse_args()
    if args.fit:
        print(json.dumps(fit(args.fit, args.level)))
    elif not args.data.exists():
        print(f"skipped: {args.data} is not there; name a data set")
    else:
        sys.exit(0 if compare(args.data, args.program, args.rounds) else 1)
