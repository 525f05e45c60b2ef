"""Writes crates/privacy/tests/oracle/accounting.json: reference values that the accountants are tested against.

    python scripts/oracle/accounting.py [--output FILE]

Needs dp-accounting and mpmath. Takes about twenty minutes. Finished trees are kept in FILE.partial, so that an
interrupted run goes on where it stopped; the file is removed at the end. Trees and order are fixed by the script: a
second run with the same library versions writes the same file.
"""

import argparse
import json
import math
import pathlib
import random
import sys
import warnings

import reference as ref

warnings.filterwarnings("ignore")
OUT = pathlib.Path(__file__).parents[2] / "crates/privacy/tests/oracle/accounting.json"


def gaussian(sigma, sensitivity=1.0):
    return {"type": "gaussian", "sigma": sigma, "sensitivity": sensitivity}


def sampled(rate, event):
    return {"type": "poisson-sampled", "rate": rate, "event": event}


def repeated(event, count):
    return {"type": "self-composed", "event": event, "count": count}


def composed(*events):
    return {"type": "composed", "events": list(events)}


def laplace(scale, sensitivity=1.0):
    return {"type": "laplace", "scale": scale, "sensitivity": sensitivity}


def response(keep):
    return {"type": "randomized-response", "true_positive": keep, "false_positive": 1 - keep}


def trees():
    deltas = [1e-5, 1e-7, 1e-2, 1e-9]
    index = 0
    for rate in [1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0]:
        for steps in [1, 10, 100, 1000, 10_000, 100_000]:
            for sigma in [0.3, 0.6, 1.0, 2.0, 5.0, 16.0, 50.0]:
                yield repeated(sampled(rate, gaussian(sigma)), steps), deltas[index % 4]
                index += 1
    draw = random.Random(7)
    for depth in range(1, 6):
        for sigma in [0.8, 1.5, 4.0]:
            for nap in [1.0, 3.0]:
                dpsgd = repeated(sampled(256 / 19804, gaussian(sigma)), 773 * (depth + 1))
                yield composed(repeated(gaussian(sigma * nap), depth), dpsgd), 1e-5
    for _ in range(20):
        parts = [
            repeated(
                sampled(10 ** draw.uniform(-3, -0.5), gaussian(10 ** draw.uniform(-0.1, 1))), draw.randrange(1, 2000)
            )
            for _ in range(draw.randrange(1, 4))
        ]
        yield composed(gaussian(10 ** draw.uniform(0, 1), 2.0), *parts), 10 ** draw.uniform(-9, -3)
    for scale in [0.5, 1.0, 4.0, 20.0]:
        for steps in [1, 30, 1000]:
            yield repeated(laplace(scale), steps), 1e-6
            yield repeated(sampled(0.05, laplace(scale)), steps), 1e-6
    for keep in [0.51, 0.6, 0.75, 0.99]:
        for steps in [1, 20]:
            yield repeated(response(keep), steps), 1e-6


def ask(tree, delta):
    """The row of one tree, or None where dp-accounting has no finite answer."""
    try:
        interval, high, low = ref.pld_epsilon(tree, delta)
    except (ValueError, MemoryError, OverflowError) as error:
        print("skipped", tree, repr(error), file=sys.stderr)
        return None
    rdp = ref.rdp_epsilon(tree, delta, ref.WHOLE_ORDERS)
    low = low if math.isfinite(low) else 0.0  # the optimistic bound says nothing
    if not math.isfinite(high) or (rdp and not math.isfinite(rdp[0])):
        print("skipped", tree, high, rdp, file=sys.stderr)
        return None
    return [tree, delta, float(f"{interval:.3g}"), high, low, rdp and rdp[0]]


def answered(partial):
    """What an interrupted run has finished: question -> row. A line that was cut off is asked again."""
    done = {}
    for line in partial.read_text().splitlines() if partial.exists() else []:
        try:
            question, row = json.loads(line)
        except ValueError:
            continue
        done[question] = row
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=OUT)
    output = parser.parse_args().output
    data = {
        "gaussian": [],
        "special": [],
        "sampled_once": [],
        "divergence": [],
        "rdp": [],
        "multi_term": [],
        "trees": [],
    }
    for mu in [1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 40.0]:
        for delta in [1e-2, 1e-5, 1e-7, 1e-10, 1e-15, 1e-20, 1e-30]:
            data["gaussian"].append([mu, delta, ref.gaussian_epsilon(mu, delta)])
    for mu in [0.05, 0.3, 1.0, 3.0, 10.0, 20.0]:
        for epsilon in [0.01, 0.1, 1.0, 5.0, 20.0, 100.0, 150.0]:
            value = ref.gaussian_log_delta(mu, epsilon)
            if value > -700:
                data["special"].append([mu, epsilon, value])
    for rate in [1e-4, 1e-2, 0.3, 0.9]:
        for sigma in [0.3, 0.7, 2.0, 10.0]:
            for epsilon in [0.01, 0.1, 1.0, 4.0, 20.0]:
                value = ref.sampled_gaussian_delta(rate, sigma, epsilon)
                if value > 1e-40:
                    data["sampled_once"].append([rate, sigma, epsilon, value])
    for rate in [1e-4, 0.01, 0.3]:
        for sigma in [0.4, 1.0, 8.0]:
            for order in [1.1, 1.7, 2.5, 4.0, 9.3, 20.0]:
                data["divergence"].append([rate, sigma, order, ref.sampled_gaussian_divergence(rate, sigma, order)])
    for steps, noise, batch, terms in [
        (100, 1.0, 100, 10),
        (1000, 2.0, 256, 11),
        (500, 4.0, 1000, 101),
        (50, 0.8, 64, 6),
    ]:
        args = (steps, noise, 1e-5, 19804, batch, terms)
        data["multi_term"].append([*args, ref.multi_term_epsilon(*args)])
    selections = [(1.0, 0.1), (0.0, 0.05), (0.5, 0.01), (2.0, 0.5)]
    for eta, gamma in selections:
        base = repeated(sampled(0.01, gaussian(1.5)), 300)
        tree = {"type": "private-selection", "eta": eta, "gamma": gamma, "event": base}
        data["rdp"].append([tree, 1e-6, ref.rdp_epsilon(tree, 1e-6, ref.WHOLE_ORDERS)[0]])
    partial = output.with_name(output.name + ".partial")
    done = answered(partial)
    with partial.open("a") as log:
        log.write("\n")  # ends a line that was cut off
        for i, (tree, delta) in enumerate(trees()):
            question = json.dumps([tree, delta])
            if question not in done:
                done[question] = ask(tree, delta)
                log.write(json.dumps([question, done[question]]) + "\n")
                log.flush()
                print(i, done[question], file=sys.stderr, flush=True)
            if done[question]:
                data["trees"].append(done[question])
    lines = [
        json.dumps(key) + ": [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]" for key, rows in data.items()
    ]
    output.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    partial.unlink()


if __name__ == "__main__":
    main()
