"""Runs the commands in ```console blocks of documents again and writes what they print in the place of what stood
there.

    python scripts/sample-outputs.py --progap target/release/progap docs/training.md

All commands of a document run in one empty folder, in their order. A command with ^C after it is interrupted after a
second. A document is replaced when all of its commands have run; one that ends otherwise than its sample did (`error:`
or not) stops the script.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time


def output_of(command, interrupted, folder, environment):
    process = subprocess.Popen(
        ["bash", "-c", "exec " + command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if interrupted:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    lines = ["^C"] if interrupted else []
    return lines + [line.rstrip() for line in printed.rstrip("\n").split("\n") if printed.strip()], process.returncode


def renewed(text, folder, environment):
    lines, out, at = text.split("\n"), [], 0
    in_block = False
    while at < len(lines):
        line = lines[at]
        at += 1
        out.append(line)
        if line.startswith("```"):
            in_block = line == "```console"
        if not (in_block and line.startswith("$ ")):
            continue
        before = []
        while not lines[at].startswith(("$ ", "```")):
            before.append(lines[at])
            at += 1
        print(line, file=sys.stderr)
        printed, code = output_of(line[2:], before[:1] == ["^C"], folder, environment)
        if (code != 0) != any(said.startswith("error:") for said in before):
            sys.exit("\n".join([f"error: ended with {code}, unlike the sample", *printed]))
        out += printed
    return "\n".join(out)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--progap", default="target/release/progap")
    arguments.add_argument("documents", nargs="+", type=pathlib.Path)
    given = arguments.parse_args()
    command = pathlib.Path(given.progap).resolve()
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    for document in given.documents:
        with tempfile.TemporaryDirectory() as folder:
            text = renewed(document.read_text(), folder, environment)
        beside = document.with_name(document.name + ".new")
        beside.write_text(text)
        beside.replace(document)


if __name__ == "__main__":
    main()
