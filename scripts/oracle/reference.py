"""What dp-accounting and mpmath say about an event tree (written as this project's JSON)."""

import math

import dp_accounting as dp
import mpmath as mp
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

ADD_REMOVE = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
RDP_ORDERS = [1 + x / 10.0 for x in range(1, 100)] + list(range(11, 64)) + [128, 256, 512, 1024]


# At fractional orders dp-accounting sums the absolute values of an alternating series, which is more than the
# divergence; at whole orders both sides are exact.
WHOLE_ORDERS = list(range(2, 64)) + [128, 256, 512, 1024]


def to_dp_event(event):
    """The same tree as a DpEvent, or None where dp-accounting has no such event."""
    kind = event["type"]
    if kind == "gaussian":
        return dp.GaussianDpEvent(event["sigma"] / event["sensitivity"])
    if kind == "laplace":
        return dp.LaplaceDpEvent(event["scale"] / event["sensitivity"])
    if kind == "poisson-sampled":
        return dp.PoissonSampledDpEvent(event["rate"], to_dp_event(event["event"]))
    if kind == "composed":
        return dp.ComposedDpEvent([to_dp_event(e) for e in event["events"]])
    if kind == "self-composed":
        return dp.SelfComposedDpEvent(to_dp_event(event["event"]), event["count"])
    if kind == "private-selection" and event["eta"] >= 0:
        mean = rdp._truncated_negative_binomial_mean(event["gamma"], event["eta"])
        return dp.dp_event.RepeatAndSelectDpEvent(to_dp_event(event["event"]), mean, event["eta"])
    return None


def count_steps(event):
    kind = event["type"]
    if kind == "composed":
        return sum(count_steps(e) for e in event["events"])
    if kind == "self-composed":
        return event["count"] * count_steps(event["event"])
    return 1


def rdp_epsilon(event, delta, orders=RDP_ORDERS):
    """Epsilon and best order over the given orders; None where dp-accounting cannot."""
    dp_event = to_dp_event(event)
    accountant = rdp.RdpAccountant(orders, ADD_REMOVE)
    if dp_event is None or not accountant.supports(dp_event):
        return None
    accountant.compose(dp_event)
    return accountant.get_epsilon_and_optimal_order(delta)


def build_pld(event, interval, pessimistic):
    kind = event["type"]
    if kind == "composed":
        total = None
        for child in event["events"]:
            part = build_pld(child, interval, pessimistic)
            total = part if total is None else total.compose(part)
        return total
    if kind == "self-composed":
        return build_pld(event["event"], interval, pessimistic).self_compose(event["count"])
    rate = 1.0
    if kind == "poisson-sampled":
        rate, event = event["rate"], event["event"]
        kind = event["type"]
    common = dict(value_discretization_interval=interval, pessimistic_estimate=pessimistic)
    if kind == "gaussian":
        return pld.from_gaussian_mechanism(
            event["sigma"], sensitivity=event["sensitivity"], sampling_prob=rate,
            log_mass_truncation_bound=-80, neighboring_relation=ADD_REMOVE, **common)
    if kind == "laplace":
        return pld.from_laplace_mechanism(
            event["scale"], sensitivity=event["sensitivity"], sampling_prob=rate, **common)
    if kind == "randomized-response":
        assert rate == 1.0 and abs(event["true_positive"] + event["false_positive"] - 1) < 1e-12
        return pld.from_randomized_response(2 * event["false_positive"], 2, **common)
    raise ValueError(kind)


def pld_epsilon(event, delta, accuracy=1e-4):
    """(interval, pessimistic, optimistic) epsilon, the interval being fine enough for the given relative accuracy."""
    steps = count_steps(event)
    guess = rdp_epsilon(event, delta)
    epsilon, order = guess if guess and guess[0] > 0 else (1.0, 2.0)
    interval = math.sqrt(12 * accuracy * epsilon / (steps * order))
    if "randomized-response" in str(event):
        interval = accuracy * epsilon / (10 * steps)  # its losses are rounded up, not shared between neighbours
    pessimistic = None
    for _ in range(4):
        loss = build_pld(event, interval, True)
        pessimistic = loss.get_epsilon_for_delta(delta)
        steeper = loss.get_epsilon_for_delta(delta / 1.5)
        if pessimistic == 0 or steeper <= pessimistic:
            break
        # A rare large loss misleads the moments; use the slope of ln delta where the answer is.
        slope = math.log(1.5) / (steeper - pessimistic)
        wanted = math.sqrt(12 * accuracy * pessimistic / (steps * (slope + 1)))
        if wanted > 0.7 * interval or wanted < 3e-6:
            break
        interval = wanted
    optimistic = build_pld(event, interval, False).get_epsilon_for_delta(delta)
    return interval, pessimistic, optimistic


def gaussian_log_delta(mu, epsilon):
    """ln delta(epsilon) of N(mu, 1) against N(0, 1), to 40 digits."""
    with mp.workdps(60):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        value = mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
        return float(mp.log(value))


def gaussian_epsilon(mu, delta):
    """epsilon(delta) of N(mu, 1) against N(0, 1), by bisection in 60 digits."""
    with mp.workdps(60):
        mu, delta = mp.mpf(mu), mp.mpf(delta)
        f = lambda e: mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu) - delta
        low, high = mp.mpf(0), mu * mu / 2 + mu * mp.sqrt(2 * mp.log(1 / delta))
        if f(low) <= 0:
            return 0.0
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) > 0 else (low, middle)
        return float(high)


def sampled_gaussian_delta(rate, sigma, epsilon):
    """delta(epsilon) of a single Poisson-sampled Gaussian in both directions, to many digits."""
    with mp.workdps(60):
        q, s, e = mp.mpf(rate), mp.mpf(sigma), mp.mpf(epsilon)
        # Remove: (1-q) N(0) + q N(1) against N(0), loss above epsilon beyond x.
        x = s**2 * mp.log((mp.exp(e) - 1 + q) / q) + mp.mpf(1) / 2
        upper = lambda m: mp.ncdf((m - x) / s)
        remove = (1 - q) * upper(0) + q * upper(1) - mp.exp(e) * upper(0)
        add = mp.mpf(0)
        if mp.exp(-e) > 1 - q:
            y = s**2 * mp.log((mp.exp(-e) - 1 + q) / q) + mp.mpf(1) / 2
            lower = lambda m: mp.ncdf((y - m) / s)
            add = lower(0) - mp.exp(e) * ((1 - q) * lower(0) + q * lower(1))
        return float(max(remove, add, 0))


def sampled_gaussian_divergence(rate, sigma, order):
    """Rényi divergence of (1-q) N(0, s^2) + q N(1, s^2) from N(0, s^2), by quadrature in 40 digits."""
    with mp.workdps(40):
        q, s, a = mp.mpf(rate), mp.mpf(sigma), mp.mpf(order)
        density = lambda x: mp.npdf(x, 0, s) * (1 - q + q * mp.exp((2 * x - 1) / (2 * s**2))) ** a
        low, high = -14 * s, max(a, 2) + 14 * s
        pieces = [low + (high - low) * i / 40 for i in range(41)]
        return float(mp.log(mp.quad(density, pieces)) / (a - 1))


def multi_term_epsilon(steps, noise_multiplier, delta, population, batch_size, max_terms):
    """The published multi-term accountant: noise multiplier relative to the change of all max_terms terms."""
    from scipy.special import logsumexp
    from scipy.stats import hypergeom
    import numpy as np

    orders = np.arange(1.1, 10, 0.1)
    k = np.arange(max_terms + 1)
    log_p = hypergeom(population, max_terms, batch_size).logpmf(k)
    values = [steps * logsumexp(log_p + a * (a - 1) / (2 * noise_multiplier**2) * (k / max_terms) ** 2) / (a - 1)
              for a in orders]
    return float(rdp.compute_epsilon(orders, values, delta)[0])
