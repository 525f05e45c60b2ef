#!/usr/bin/env python3
"""What training on several machines would take: rates of one core, measured in processor time, and what
docs/machines.md says is sent.

    cargo build --release && python3 bench/ranks.py [--folder DIR] [--nodes 400000] [--times 3]

Trains with one thread on graphs that differ in their edges and in the number of epochs, several times in turns; the
differences of the shortest times are what an edge takes, and a row in an epoch. Then it prints the table of
docs/machines.md for 100 million nodes. Only the standard library is needed.
"""

import argparse
import math
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGAP = Path(os.environ.get("PROGAP", ROOT / "target" / "release" / "progap"))

# What is asked about: a graph as ogbn-papers100M is, all of whose nodes have a label, and the machines.
NODES, EDGES, COLUMNS, CLASSES, WIDTH, DEPTH, EPOCHS, TRAINING = 100e6, 1.6e9, 128, 16, 16, 2, 100, 0.75
CORES, WRITES, READS = 32, 1e9, 2e9
# Few epochs, and many.
FEW, MANY = 2, 12


def seconds(arguments):
    """Processor seconds of a command."""
    child = subprocess.Popen([str(PROGAP), *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"progap {' '.join(map(str, arguments))} failed")
    return used.ru_utime + used.ru_stime


def rates(folder, nodes, times):
    """Seconds of one core for an edge, for a row in an epoch of a stage, and for a node in all else."""

    def graph(edges):
        file = folder / f"{edges}.progap"
        seconds(
            [
                "data",
                "synth",
                file,
                "--nodes",
                nodes,
                "--edges",
                edges,
                "--communities",
                50,
                "--classes",
                CLASSES,
                "--dense",
                COLUMNS,
            ]
        )
        return file

    def train(file, epochs):
        out = folder / "release"
        shutil.rmtree(out, ignore_errors=True)
        return seconds(
            [
                "train",
                file,
                "--method",
                "progap-labels",
                "--level",
                "edge",
                "--order",
                "public",
                "--depth",
                DEPTH,
                "--hidden",
                WIDTH,
                "--epochs",
                epochs,
                "--threads",
                1,
                "--seed",
                1,
                "--quiet",
                "--out",
                out,
            ]
        )

    less, more = 4 * nodes, 16 * nodes
    few_edges, many_edges = graph(less), graph(more)
    turns = [(train(few_edges, FEW), train(many_edges, FEW), train(few_edges, MANY)) for _ in range(times)]
    base, with_edges, with_epochs = map(min, zip(*turns))
    edge = (with_edges - base) / (more - less)
    row = (with_epochs - base) / ((MANY - FEW) * (DEPTH + 1) * TRAINING * nodes)
    node = (base - edge * less - row * FEW * (DEPTH + 1) * TRAINING * nodes) / nodes
    if min(edge, row, node) <= 0:
        raise SystemExit(
            "the machine is too busy, or the graph too small, to tell what an edge takes: give more --nodes or --times"
        )
    return edge, row, node


def sums_of_an_epoch():
    """Bytes that a rank receives in an epoch: docs/machines.md, 64 chunks, one layer in a branch, the last stage."""
    hidden, classes, branches = -(-WIDTH // 16) * 16, -(-CLASSES // 16) * 16, DEPTH + 1
    parameters = (COLUMNS + 1) * hidden + DEPTH * (WIDTH + 1) * hidden + 2 * hidden * branches
    parameters += (branches * hidden + 1) * classes
    chunk = 8 * (1 + 3 * hidden) * branches + 2 * (4 * (parameters + classes + 1) + 16)
    return 64 * chunk


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--folder", type=Path, help="where graphs and releases are made; a temporary one otherwise")
    asked.add_argument("--nodes", type=int, default=400_000)
    asked.add_argument("--times", type=int, default=3)
    asked = asked.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        edge, row, node = rates(Path(folder), asked.nodes, asked.times)
    print(
        f"one core: {edge * 1e9:.1f} ns an edge (checks and {DEPTH} aggregations), {row * 1e9:.0f} ns a row, stage "
        f"and epoch, "
        f"{node * 1e6:.2f} us a node for all else\n"
    )
    print(
        "| machines | network, Gbit/s | edges, s | training, s | rows and noise, s | messages, s | sums, s | first "
        "rank reads, s "
        "| first rank writes, s | all, s | bound by |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    read = (4 * EDGES + 2 * COLUMNS * NODES + 30 * NODES) / READS
    written = (4 * WIDTH * NODES * DEPTH + 2 * COLUMNS * NODES) / WRITES
    for machines in (4, 16, 64):
        for gigabits in (10, 100):
            network = gigabits * 1e9 / 8
            cores = machines * CORES
            need = NODES * (1 - math.exp(-EDGES / NODES / machines)) * (1 - 1 / machines)
            parts = {
                "arithmetic, edges": edge * EDGES / cores,
                "arithmetic, training": row * TRAINING * NODES * EPOCHS * (DEPTH + 1) / cores,
                "arithmetic, rows and noise": node * NODES / cores,
                "network": DEPTH * need * WIDTH / network,
                "network, sums": sums_of_an_epoch() * EPOCHS * (DEPTH + 1) * (1 - 1 / machines) / network,
                "the first rank's disk, reading": read,
                "the first rank's disk, writing": written,
            }
            numbers = " | ".join(f"{value:.1f}" for value in parts.values())
            print(f"| {machines} | {gigabits} | {numbers} | {sum(parts.values()):.0f} | {max(parts, key=parts.get)} |")


if __name__ == "__main__":
    main()
