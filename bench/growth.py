#!/usr/bin/env python3
"""Time and memory of the command against the size of the graph, and what the machine can do at best beside it.

    cargo build --release && python3 bench/growth.py [--folder DIR] [--large]

Each row is a process of its own. `--large` makes a quarter of ogbn-papers100M (27.75 M nodes, 400 M edges, 128 columns in half precision,
1.4 % labelled) and an eighth and a sixteenth of it, which takes 20 GB of disk, and trains on them, all with the same `--memory`. Only the
standard library is needed.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGAP = Path(os.environ.get("PROGAP", ROOT / "target" / "release" / "progap"))


def run(arguments, folder):
    """Runs the command; elapsed and processor seconds, peak memory in MB, and what it printed."""
    begun = time.monotonic()
    child = subprocess.Popen([str(PROGAP), *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    printed, said = child.stdout.read(), child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"progap {' '.join(arguments)}: {said.decode().strip()}")
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, printed.decode()


def megabytes(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def disk_rate(folder, size=1 << 30):
    """MB/s at which the disk takes a file in, synced, and at which the page cache gives it out."""
    file, block = folder / "rate", os.urandom(1 << 20)
    begun = time.monotonic()
    with open(file, "wb") as out:
        for _ in range(size >> 20):
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    written = time.monotonic()
    with open(file, "rb") as content:
        while content.read(1 << 20):
            pass
    read = time.monotonic()
    file.unlink()
    return size / 1e6 / (written - begun), size / 1e6 / (read - written)


def train(name, folder, file, settings):
    out = folder / "release"
    shutil.rmtree(out, ignore_errors=True)
    # Communities lie side by side.
    order = [] if "none" in settings else ["--order", "public"]
    elapsed, cpu, peak, printed = run(["train", file, "--out", "release", "--json", *order, *settings], folder)
    result = json.loads(printed)
    data, release = megabytes(folder / file), megabytes(out)
    stages = {stage["name"]: round(stage["seconds"], 1) for stage in result["owner"].get("stages", [])}
    accuracy = result.get("test_accuracy") or result.get("owner", {}).get("test_accuracy")
    shown = f"{100 * accuracy:.1f}" if accuracy else "-"
    print(
        f"| {name} | {elapsed:.1f} | {cpu:.1f} | {peak:.0f} | {data:.0f} | {release:.0f} | {peak / (data + release):.2f} | {shown} | {stages} |",
        flush=True,
    )
    return cpu, elapsed


HEAD = (
    "| run | elapsed, s | CPU-s | peak, MB | data, MB | release, MB | peak / both | accuracy, % | stages, s |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|---|"
)


def growth(folder, level, sizes):
    print(f"\n## {level} level, defaults, 50 directed edges a node\n\n{HEAD}", flush=True)
    before = None
    for nodes in sizes:
        run(["data", "synth", "g.progap", "--nodes", str(nodes), "--edges", str(50 * nodes), "--force"], folder)
        now = train(f"{nodes:,} nodes", folder, "g.progap", ["--level", level])
        if before:
            print(f"| twice the nodes | x{now[1] / before[1]:.2f} | x{now[0] / before[0]:.2f} | | | | | | |", flush=True)
        before = now


def million(folder):
    print(f"\n## 1.1 million nodes, 85 million edges, 100 communities\n\n{HEAD}", flush=True)
    sizes = ["--nodes", "1100000", "--edges", "85000000", "--communities", "100", "--force"]
    run(["data", "synth", "m.progap", *sizes], folder)
    for name, settings in [
        ("node level", ["--level", "node"]),
        ("edge level (views)", []),
        ("edge level, progap", ["--method", "progap"]),
        ("edge level (views), --memory 600M", ["--memory", "600M"]),
        ("edge level, progap, --memory 600M", ["--method", "progap", "--memory", "600M"]),
    ]:
        train(name, folder, "m.progap", settings)


def papers(folder, methods, parts, memory):
    print(f"\n## Parts of ogbn-papers100M's size, edge level, --memory {memory}\n\n{HEAD}", flush=True)
    for part in parts:
        nodes, edges = 111_000_000 // part, 1_600_000_000 // part
        sizes = ["--nodes", str(nodes), "--edges", str(edges), "--communities", str(4000 // part), "--classes", "16"]
        made = run(["data", "synth", "p.progap", *sizes, "--dense", "128", "--labelled", "0.014", "--force"], folder)
        print(f"| made 1/{part} | {made[0]:.1f} | {made[1]:.1f} | {made[2]:.0f} | | | | | |", flush=True)
        for method, more in methods:
            train(f"1/{part}, {method}", folder, "p.progap", ["--method", method, "--memory", memory, *more])
        for command in (["verify", "release"], ["predict", "release", "--out", "p.csv", "--force"]):
            used = run([*command, "--memory", memory], folder)
            print(f"| 1/{part}, {command[0]} | {used[0]:.1f} | {used[1]:.1f} | {used[2]:.0f} | | | | | |", flush=True)
        (folder / "p.csv").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="where files are made [default: a temporary folder]")
    parser.add_argument("--large", action="store_true", help="parts of ogbn-papers100M's size instead of the small tables")
    parser.add_argument("--parts", default="16,8,4", help="with --large, the parts: 4 for a quarter [default: 16,8,4]")
    parser.add_argument("--memory", default="3G", help="with --large, the bound of every run, whatever the part [default: 3G]")
    parser.add_argument("--methods", default="progap,views", help="with --large, the methods [default: progap,views]")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = Path(folder)
        written, read = disk_rate(folder)
        print(f"disk: {written:.0f} MB/s in, synced; page cache: {read:.0f} MB/s out", flush=True)
        if arguments.large:
            settings = {"progap": ["--epochs", "20", "--depth", "2"], "views": ["--depth", "2"]}
            methods = [(method, settings[method]) for method in arguments.methods.split(",")]
            papers(folder, methods, [int(part) for part in arguments.parts.split(",")], arguments.memory)
        else:
            million(folder)
            growth(folder, "edge", [100_000, 200_000, 400_000, 800_000])
            growth(folder, "node", [100_000, 200_000, 400_000, 800_000, 1_600_000])
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"\nin all {usage.ru_utime + usage.ru_stime:.0f} CPU-s")


if __name__ == "__main__":
    main()
