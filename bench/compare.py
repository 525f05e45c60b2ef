"""CPU time and peak memory of `progap train` beside PyTorch, on the same data, in one run.

    cargo build --release -p progap-cli
    python bench/compare.py [--data FOLDER/facebook100/Berkeley13.mat] [--rounds 3]

Run it with a Python that has torch, numpy and opacus. The cases take turns, and the least of all rounds counts, because
the machine may be busy. Ours is the processor time once the file is read: calibration, aggregation, noise, training,
writing the release; and that of the whole process. The peer's (bench/peer/train.py) is that of its training steps
alone, and of one thread, as ours. Peak memory is that of the whole process for both.

Without torch or the data there is nothing to compare: a message says so, and the exit code is 0.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("PROGAP_SHARED", ROOT.parent / "shared"))
#        method, level, depth, epochs, layers
CASES = [
    ("progap", "edge", 2, 100, 1),
    ("progap", "edge", 5, 100, 1),
    ("progap", "node", 2, 10, 1),
    ("gap", "edge", 2, 100, 1),
    ("mlp", "edge", 0, 100, 2),
]


def measured(command):
    """CPU seconds and peak bytes of a child, and what it printed."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"failed with code {child.returncode}: {' '.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output


def ours(progap, data, folder, method, level, depth, epochs, layers):
    release = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "release"
    command = [progap, "train", data, "--method", method, "--preset", "paper", "--level", level]
    command += ["--depth", str(depth)] if depth else []
    command += ["--epochs", str(epochs), "--layers", str(layers), "--threads", "1", "--json", "--out", release]
    whole, memory, output = measured(command)
    return json.loads(output)["owner"]["cpu_seconds"], memory, whole


def peer(npz, method, level, depth, epochs, _):
    command = [sys.executable, ROOT / "bench/peer/train.py", "--data", npz, "--method", method, "--level", level]
    _, memory, output = measured(command + ["--depth", str(depth), "--epochs", str(epochs)])
    return json.loads(output.splitlines()[-1])["cpu_seconds"], memory, 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, default=SHARED / "data/facebook100/Berkeley13.mat")
    parser.add_argument("--progap", type=pathlib.Path, default=ROOT / "target/release/progap")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit(print("skipped: this Python has no torch (pip install torch numpy opacus)"))
    if not args.data.exists():
        sys.exit(print(f"skipped: {args.data} is not there; name a data set with --data"))
    if not args.progap.exists():
        sys.exit(f"{args.progap} is not there: cargo build --release -p progap-cli")
    cases = CASES
    if importlib.util.find_spec("opacus") is None:
        print("skipped at node level: this Python has no opacus (pip install opacus)")
        cases = [case for case in CASES if case[1] != "node"]
    with tempfile.TemporaryDirectory() as folder:
        npz = pathlib.Path(folder) / "data.npz"
        measured([args.progap, "data", "convert", args.data, npz])
        best = {case: [(float("inf"),) * 3] * 2 for case in cases}
        for _ in range(args.rounds):
            for case in cases:
                found = [ours(args.progap, args.data, folder, *case), peer(npz, *case)]
                best[case] = [tuple(map(min, old, new)) for old, new in zip(best[case], found)]
    print("| case | ours, CPU-s | whole process | PyTorch, CPU-s | ratio | ours, peak MB | PyTorch, peak MB | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for (method, level, depth, epochs, _), ((cpu, memory, whole), (peer_cpu, peer_memory, _)) in best.items():
        print(
            f"| {method}, {level}, K = {depth}, {epochs} epochs | {cpu:.2f} | {whole:.2f} | {peer_cpu:.2f} | "
            f"{peer_cpu / cpu:.1f} "
            f"| {memory / 1e6:.0f} | {peer_memory / 1e6:.0f} | {peer_memory / memory:.1f} |"
        )


if __name__ == "__main__":
    main()
