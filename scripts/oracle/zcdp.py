"""Writes crates/privacy/tests/oracle/zcdp.json: [rho, delta, epsilon] as dp-accounting converts concentrated privacy.

python scripts/oracle/zcdp.py
"""

import json
import pathlib

import dp_accounting
from dp_accounting import rdp

OUT = pathlib.Path(__file__).parents[2] / "crates/privacy/tests/oracle/zcdp.json"
# Orders dense enough that the best of them is within 1e-4 of the best of all.
ORDERS = [1 + 10 ** (power / 200) for power in range(-800, 1200)]


def epsilon(rho, delta):
    accountant = rdp.RdpAccountant(ORDERS)
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    return accountant.get_epsilon(delta)


if __name__ == "__main__":
    rows = [
        [rho, delta, epsilon(rho, delta)] for rho in [1e-4, 1e-3, 0.02, 0.5, 2.0, 10.0] for delta in [1e-3, 1e-6, 1e-10]
    ]
    OUT.write_text(json.dumps(rows, indent=1) + "\n")
