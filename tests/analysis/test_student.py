"""Student's t against scipy, which is not needed to run Sealegs."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy import special, stats

from sealegs.analysis.student import beta_cdf, beta_quantile, t_cdf, t_quantile

DEGREES = [1.0, 1.3, 2.5, 7.7, 29.3, 79.9, 80.1, 12345.6, 1e6]
TAILS = [1e-12, 1e-9, 1e-6, 1e-4, 0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.2499, 0.25, 0.3, 0.4, 0.49, 0.4999]


def beyond(t: float, df: float) -> float:
    """P(T > t), by the incomplete beta function of scipy in the form that has no cancellation."""
    x, y = df / (df + t * t), t * t / (df + t * t)
    if y < 0.5:
        return float(special.betaincc(0.5, df / 2, y)) / 2
    return float(special.betainc(df / 2, 0.5, x)) / 2


@pytest.mark.parametrize("df", DEGREES)
def test_probabilities_agree_with_scipy_in_both_tails(df: float) -> None:
    points = [1e-6, 0.01, 0.3, 0.9, 1.0, 1.3, 1.5, 1.7, 1.74, 2.0, 2.6, 3.3, 4.5, 6.0]
    points = [t for t in points if beyond(t, df) > 1e-12]
    ours = np.array([t_cdf(-t, df) for t in points])
    np.testing.assert_allclose(ours, [beyond(t, df) for t in points], rtol=1e-9)
    np.testing.assert_allclose([t_cdf(t, df) for t in points], 1 - ours, rtol=1e-12)


@pytest.mark.parametrize("df", DEGREES)
def test_a_quantile_has_the_probability_that_it_is_of(df: float) -> None:
    quantiles = [t_quantile(tail, df) for tail in TAILS]
    # scipy's inverse has no more digits
    np.testing.assert_allclose(quantiles, stats.t.ppf(TAILS, df), rtol=1e-7)
    # A relative error of e in t is one of e · t · density / tail in the probability.
    scale = np.abs(quantiles) * stats.t.pdf(quantiles, df) / TAILS
    errors = np.abs(np.array([t_cdf(t, df) for t in quantiles]) / TAILS - 1)
    np.testing.assert_array_less(errors, 1e-9 * (1 + scale))
    for tail in (0.025, 0.3):
        assert t_quantile(1 - tail, df) == pytest.approx(-t_quantile(tail, df), rel=1e-12)


def test_the_ends_of_the_distribution() -> None:
    assert (t_quantile(0.975, 1e-4), t_quantile(0.025, 1e-4)) == (inf, -inf)
    assert t_quantile(0.975, 0.05) == pytest.approx(special.stdtrit(0.05, 0.975), rel=1e-9)
    assert (t_cdf(-inf, 3), t_cdf(inf, 3), t_cdf(0, 3)) == (0, 1, 0.5)


@pytest.mark.parametrize(("a", "b"), [(1.0, 40.0), (0.3, 2.2), (39.5, 1.5), (100.0, 101.0), (7e4, 3e4)])
def test_the_beta_distribution_agrees_with_scipy(a: float, b: float) -> None:
    for tail in (1e-9, 0.001, 0.025, 0.3, 0.5, 0.9, 0.999):
        x = float(stats.beta.ppf(tail, a, b))
        assert beta_cdf(x, a, b) == pytest.approx(tail, rel=1e-7)
        assert beta_quantile(tail, a, b) == pytest.approx(x, rel=1e-7)
    assert (beta_cdf(0.0, a, b), beta_cdf(1.0, a, b)) == (0.0, 1.0)
