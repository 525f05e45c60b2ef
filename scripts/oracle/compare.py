"""Compares the accountants with dp-accounting on random trees.

    python scripts/oracle/compare.py --trees 200 --seed 1

Builds the `side_by_side` example, asks both sides, prints one line per tree and fails if an epsilon is below the
oracle's optimistic bound, more than 0.1% above its pessimistic one, or out of order (pld <= rdp <= theorem).
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import warnings

import accounting as tree
import reference as ref

ROOT = pathlib.Path(__file__).parents[2]
warnings.filterwarnings("ignore")


def random_tree(draw):
    def sampled():
        rate = 10 ** draw.uniform(-4, 0)
        sigma = 10 ** draw.uniform(-0.5, 1.7)
        # Leave out what discloses everything: its epsilon is a number without meaning.
        steps = int(10 ** draw.uniform(0, 5))
        while rate * rate * steps / sigma**2 > 50:
            steps = max(1, steps // 10)
            sigma *= 1.5
        return tree.repeated(tree.sampled(rate, tree.gaussian(sigma)), steps)

    kind = draw.randrange(4)
    if kind == 0:
        return sampled()
    if kind == 1:
        return tree.composed(tree.repeated(tree.gaussian(10 ** draw.uniform(0, 1.5)), draw.randrange(1, 6)), sampled())
    if kind == 2:
        return tree.composed(sampled(), sampled())
    return tree.repeated(tree.laplace(10 ** draw.uniform(0, 1.5)), int(10 ** draw.uniform(0, 2)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    questions = [{"event": random_tree(draw), "delta": 10 ** draw.uniform(-9, -2)} for _ in range(args.trees)]
    command = ["cargo", "run", "--quiet", "--release", "-p", "progap-privacy", "--example", "side_by_side"]
    text = "".join(json.dumps(question) + "\n" for question in questions)
    answers = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    failures = 0
    for question, line in zip(questions, answers.splitlines(), strict=True):
        answer = json.loads(line)
        epsilon = {name: float(a["epsilon"]) for name, a in answer.items() if "epsilon" in a}
        _, high, low = ref.pld_epsilon(question["event"], question["delta"])
        problems = []
        if epsilon["pld"] < low:
            problems.append("below the optimistic bound")
        if epsilon["pld"] > high * 1.001:
            problems.append("more than 0.1% above")
        order = [epsilon[name] for name in ("pld", "rdp", "theorem") if name in epsilon]
        if any(a > b * (1 + 1e-6) for a, b in zip(order, order[1:])):
            problems.append("out of order")
        failures += bool(problems)
        difference = epsilon["pld"] / high - 1 if high else epsilon["pld"]
        print(f"{question['delta']:.1e} {low:.6g}..{high:.6g} pld {epsilon['pld']:.6g} ({difference:+.1e})", *problems)
        if problems:
            print(json.dumps(question))
    print(f"{len(questions)} trees, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
