"""The accountant beside somebody else's."""

import math
import pickle

import pytest

from progap import Event, PrivacyError, accounting


def test_trees_are_values():
    tree = Event.gaussian(2.0).poisson_sampled(0.1).repeated(10) + Event.laplace(3.0)
    assert Event.from_json(tree.to_json()) == tree == pickle.loads(pickle.dumps(tree)) and len({tree, tree}) == 1
    assert tree.kind == "composed" and Event.gaussian(1.0) * 3 == Event.gaussian(1.0).repeated(3)
    assert repr(Event.gaussian(2.0) * 3) == "Event(gaussian(sigma=2, sensitivity=1).repeated(3))"
    assert Event.parallel([Event.gaussian(1.0), Event.laplace(1.0)]).kind == "parallel"


def test_bounds_say_who_gave_them():
    bound = accounting.epsilon(Event.gaussian(4.68), delta=1e-7)
    assert bound.accountant == "gdp" and float(bound) == bound.value == pytest.approx(1.0, abs=1e-3)
    assert accounting.delta(Event.gaussian(4.68), epsilon=bound.value).value <= 1e-7 * (1 + 1e-6)
    by_each = [
        accounting.epsilon(Event.gaussian(2.0).repeated(5), delta=1e-6, accountant=name).value
        for name in accounting.accountants()
    ]
    assert by_each[0] == min(by_each) and math.isfinite(max(by_each))


def test_calibration_stays_within_the_budget():
    steps = Event.gaussian(1.0).poisson_sampled(0.02).repeated(500)
    found = accounting.calibrate(steps, epsilon=2.0, delta=1e-6)
    assert (
        found.bound.value <= 2.0 < accounting.epsilon(steps.with_noise_times(found.multiplier * 0.99), delta=1e-6).value
    )
    assert found.event == steps.with_noise_times(found.multiplier)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: Event.gaussian(-1.0), "sigma is -1"),
        (lambda: Event.gaussian(math.nan), "sigma is NaN"),
        (lambda: Event.gaussian(1.0).poisson_sampled(1.5), "rate is 1.5"),
        (lambda: Event.gaussian(1.0).repeated(0), "count is 0"),
        (lambda: Event.from_json("{}"), "JSON"),
        (lambda: accounting.epsilon(Event.gaussian(1.0), delta=0.0), "delta is 0"),
        (lambda: accounting.epsilon(Event.gaussian(1.0), delta=1e-6, accountant="magic"), "magic"),
        (lambda: accounting.calibrate(Event.randomized_response(0.7, 0.3), epsilon=1.0, delta=1e-6), "no noise in it"),
        (lambda: accounting.calibrate(Event.gaussian(1.0), epsilon=-1.0, delta=1e-6), "epsilon is -1"),
    ],
)
def test_questions_that_make_no_sense(wrong, said):
    with pytest.raises(PrivacyError, match=said):
        wrong()


def test_agreement_with_dp_accounting_and_speed():
    pytest.importorskip("dp_accounting")
    import compare_accounting

    rows = compare_accounting.compare(repeats=1)
    for row in rows:
        assert row.agrees, row
    assert compare_accounting.median_ratio(rows) >= 10, rows
