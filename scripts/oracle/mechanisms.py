"""Writes crates/privacy/tests/oracle/mechanisms.json: values that the noise and the audits are tested against.

    python scripts/oracle/mechanisms.py

Needs mpmath and scipy. The rounded Gaussian's probabilities in units of 2^-128 (as strings, truncated), the
Clopper-Pearson interval from beta quantiles, and the one-run audit from the theorem with scipy's binomial.
"""

import json
import math
import pathlib

import mpmath
import scipy.stats

mpmath.mp.prec = 400
OUT = pathlib.Path(__file__).parents[2] / "crates/privacy/tests/oracle/mechanisms.json"


def rounded_gaussian(sigma):
    sigma_exact = mpmath.mpf(sigma)
    largest = int(12.5 * sigma)
    points = sorted({0, 1, 2, 3, *(round(largest * k / 60) for k in range(61))})

    def tail(x):
        return mpmath.erfc(x / sigma_exact / mpmath.sqrt(2)) / 2

    half = mpmath.mpf(1) / 2
    values = []
    for n in points:
        mass = tail(n - half) - tail(n + half)
        values.append([n, str(int(mpmath.floor(mass * mpmath.mpf(2) ** 128)))])
    return {"sigma": sigma, "values": values}


def clopper_pearson(successes, trials, confidence):
    a = (1 - confidence) / 2
    beta = scipy.stats.beta.ppf
    lower = 0.0 if successes == 0 else float(beta(a, successes, trials - successes + 1))
    upper = 1.0 if successes == trials else float(beta(1 - a, successes + 1, trials - successes))
    return [successes, trials, confidence, lower, upper]


def one_run_p_value(m, r, v, eps, delta):
    w = scipy.stats.binom(r, 1 / (1 + math.exp(-eps)))
    reach = w.sf(v - 1)
    steep = max(((w.cdf(v - 1) - w.cdf(v - i - 1)) / i for i in range(1, v + 1)), default=0.0)
    return [m, r, v, eps, delta, float(min(1.0, reach + 2 * m * delta * steep))]


def main():
    oracle = {
        "rounded_gaussian": [
            rounded_gaussian(s) for s in (1.0, 3.7, 7.99, 8.0, 30.0, 299.99, 1000.0, 2000.0, 131072.0)
        ],
        "clopper_pearson": [
            clopper_pearson(k, n, c)
            for n in (1, 10, 100, 5000, 1000000)
            for k in sorted({0, 1, n // 3, n // 2, n - 1, n})
            for c in (0.5, 0.9, 0.95, 0.999)
        ],
        "one_run": [
            one_run_p_value(m, r, v, eps, delta)
            for m, r, v in (
                (100, 100, 60),
                (1000, 100, 75),
                (1000, 1000, 700),
                (5000, 200, 199),
                (50, 1, 1),
                (10, 5, 0),
            )
            for eps in (0.0, 0.3, 1.0, 3.0)
            for delta in (0.0, 1e-6, 1e-4)
        ],
    }
    with OUT.open("w") as file:
        json.dump(oracle, file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
