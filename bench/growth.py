#!/usr/bin/env python3
"""Time and memory of the command against the size of the graph, and what the machine can do at best beside it.

    cargo build --release && python3 bench/growth.py [--folder DIR] [--large | --bounded]

Each row is a process of its own. `--large` makes a quarter of ogbn-papers100M (27.75 M nodes, 400 M edges, 128 columns
in half precision, 1.4 % labelled) and an eighth and a sixteenth of it, which takes 20 GB of disk, and trains on them,
all with the same `--memory`. `--bounded` trains by every method at every level on 5 M nodes and 60 M edges, with and
without `--memory`, and ends with an error where a run held more than its bound and 5 %. Only the standard library is
needed.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGAP = Path(os.environ.get("PROGAP", ROOT / "target" / "release" / "progap"))


def run(arguments, folder, may_fail=False):
    """Runs the command; elapsed and processor seconds, peak memory in MB, and what it printed; or, if it may fail, its
    error."""
    begun = time.monotonic()
    child = subprocess.Popen([str(PROGAP), *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    printed, said = child.stdout.read(), child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0 and may_fail:
        return said.decode().strip()
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
        f"| {name} | {elapsed:.1f} | {cpu:.1f} | {peak:.0f} | {data:.0f} | {release:.0f} | "
        f"{peak / (data + release):.2f} | {shown} | {stages} |",
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
            print(
                f"| twice the nodes | x{now[1] / before[1]:.2f} | x{now[0] / before[0]:.2f} | | | | | | |", flush=True
            )
        before = now


def million(folder):
    print(f"\n## 1.1 million nodes, 85 million edges, 100 communities\n\n{HEAD}", flush=True)
    sizes = ["--nodes", "1100000", "--edges", "85000000", "--communities", "100", "--force"]
    run(["data", "synth", "m.progap", *sizes], folder)
    for name, settings in [
        ("node level", ["--level", "node"]),
        ("edge level (progap-views)", []),
        ("edge level, progap", ["--method", "progap-labels"]),
        ("edge level (progap-views), --memory 600M", ["--memory", "600M"]),
        ("edge level, progap, --memory 600M", ["--method", "progap-labels", "--memory", "600M"]),
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


BOUNDED = [(method, level) for method in ("progap-labels", "gap", "mlp") for level in ("none", "edge", "node")]
BOUNDED += [("progap-views", "none"), ("progap-views", "edge"), ("lpgnet", "none"), ("lpgnet", "edge")]
BOUNDED += [("sage", "none"), ("edge-rand", "edge"), ("dp-gnn", "node")]


def bounded(folder, arguments):
    """Every method at every level: within the bound and 5 %, or refused in words; and what the bound costs in time."""
    sizes = ["--nodes", str(arguments.nodes), "--edges", str(arguments.edges), "--labelled", str(arguments.labelled)]
    run(["data", "synth", "b.progap", *sizes, "--communities", "20", "--force"], folder)
    print(f"\n## {' '.join(sizes)}: {megabytes(folder / 'b.progap'):.0f} MB of file\n")
    columns = ["bound, MB", "peak, MB", "of the bound", "CPU-s", "elapsed, s"]
    columns += ["without: peak, MB", "CPU-s", "elapsed, s", "CPU ratio"]
    print(f"| method | level | {' | '.join(columns)} |\n|---|---|{'--:|' * len(columns)}", flush=True)
    beyond = []
    for method, level in BOUNDED:
        if arguments.methods and method not in arguments.methods.split(","):
            continue
        settings = ["--method", method, "--level", level, "--seed", "1"]
        settings += ["--epochs", "2"] if method != "progap-views" else []
        settings += ["--epsilon", "8"] if level == "node" or (level == "edge" and method != "mlp") else []
        train = ["train", "b.progap", "--out", "r", "--quiet", *settings]
        bound = int(arguments.memory.removesuffix("M"))

        def once(more):
            shutil.rmtree(folder / "r", ignore_errors=True)
            return run([*train, *more], folder, may_fail=True)

        held = once(["--memory", f"{bound}M"])
        if isinstance(held, str) and (needs := re.search(r"needs about ([0-9.]+) (GB|MB)", held)):
            # The least that it says it can do with; it is said in two digits.
            bound = int(float(needs[1]) * (1000 if needs[2] == "GB" else 1) * 1.05) + 1
            held = once(["--memory", f"{bound}M"])
        if isinstance(held, str):
            print(f"| {method} | {level} | {bound} | {held.splitlines()[-1]} | | | | | | | |", flush=True)
            continue
        free = once([])
        ratio = held[2] / bound
        beyond += [f"{method} at level {level}"] if ratio > 1.05 else []
        cells = [f"{held[2]:.0f}", f"{ratio:.2f}", f"{held[1]:.1f}", f"{held[0]:.1f}"]
        cells += [f"{free[2]:.0f}", f"{free[1]:.1f}", f"{free[0]:.1f}", f"{held[1] / free[1]:.2f}"]
        print(f"| {method} | {level} | {bound} | {' | '.join(cells)} |", flush=True)
    if beyond:
        raise SystemExit(f"beyond the bound: {', '.join(beyond)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="where files are made [default: a temporary folder]")
    parser.add_argument(
        "--large", action="store_true", help="parts of ogbn-papers100M's size instead of the small tables"
    )
    parser.add_argument("--parts", default="16,8,4", help="with --large, the parts: 4 for a quarter [default: 16,8,4]")
    parser.add_argument("--bounded", action="store_true", help="every method and level with and without a bound")
    parser.add_argument("--nodes", type=int, default=5_000_000, help="with --bounded, the nodes [default: 5,000,000]")
    parser.add_argument("--edges", type=int, default=60_000_000, help="with --bounded, the edges [default: 60,000,000]")
    parser.add_argument("--labelled", type=float, default=0.1, help="with --bounded, their share with a label")
    parser.add_argument("--memory", help="the bound of every run [default: 3G with --large, 600M with --bounded]")
    parser.add_argument(
        "--methods", help="some methods only [default: progap-labels,progap-views with --large, all with --bounded]"
    )
    arguments = parser.parse_args()
    arguments.memory = arguments.memory or ("600M" if arguments.bounded else "3G")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = Path(folder)
        if arguments.bounded:
            return bounded(folder, arguments)
        written, read = disk_rate(folder)
        print(f"disk: {written:.0f} MB/s in, synced; page cache: {read:.0f} MB/s out", flush=True)
        if arguments.large:
            settings = {"progap-labels": ["--epochs", "20", "--depth", "2"], "progap-views": ["--depth", "2"]}
            methods = [
                (method, settings[method]) for method in (arguments.methods or "progap-labels,progap-views").split(",")
            ]
            papers(folder, methods, [int(part) for part in arguments.parts.split(",")], arguments.memory)
        else:
            million(folder)
            growth(folder, "edge", [100_000, 200_000, 400_000, 800_000])
            growth(folder, "node", [100_000, 200_000, 400_000, 800_000, 1_600_000])
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"\nin all {usage.ru_utime + usage.ru_stime:.0f} CPU-s")


if __name__ == "__main__":
    main()
