"""Student's t and the beta distribution as functions of single numbers, so that scipy is not needed.

With a = df/2 and x = df / (df + t²), P(T > t) = ½ Iₓ(a, ½) for t > 0: half of the regularised incomplete beta
function (Abramowitz & Stegun 1964, 26.7.1).
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, gamma, inf, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

NORMAL = NormalDist()
TINY = 1e-300
LARGEST_T = 1e150
"""Its square is still a float."""


def t_cdf(t: float, df: float) -> float:
    """P(T ≤ t), in the lower tail with full relative precision."""
    return _tail(-t, df) if t < 0 else 1 - _tail(t, df)


@lru_cache(4096)
def t_quantile(quantile: float, df: float) -> float:
    """The t with P(T ≤ t) = quantile, by Newton's method; infinite where it is beyond the largest float."""
    tail = min(quantile, 1 - quantile)
    low, high = 0.0, 1.0
    while high < LARGEST_T and _tail(high, df) >= tail:
        low, high = high, 2 * high
    if high >= LARGEST_T:
        return inf if quantile > 0.5 else -inf
    t = (low + high) / 2
    for _ in range(100):
        error = _tail(t, df) - tail
        low, high = (t, high) if error > 0 else (low, t)
        following = t + error / _density(t, df)
        step, t = t, following if low < following < high else (low + high) / 2
        if abs(t - step) <= 1e-10 * t:  # what is left is about its square
            break
    return t if quantile > 0.5 else -t


def beta_cdf(x: float, a: float, b: float) -> float:
    """Iₓ(a, b), the regularised incomplete beta function: for whole numbers P(at least a of a + b − 1 are
    right) where each is with probability x. In the lower tail with full relative precision."""
    if a <= 0 or not 0 < x < 1:
        return float(a <= 0 or x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):  # where the fraction converges fast
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def beta_quantile(quantile: float, a: float, b: float) -> float:
    """The x with Iₓ(a, b) = quantile, by bisection to the last digit."""
    low, high = 0.0, 1.0
    while low < (x := (low + high) / 2) < high:
        low, high = (x, high) if beta_cdf(x, a, b) < quantile else (low, x)
    return x


def _density(t: float, df: float) -> float:
    return exp(-(df + 1) / 2 * log1p(t * t / df)) * _gamma_ratio(df / 2) / sqrt(pi * df)


def _tail(t: float, df: float) -> float:
    """P(T > t) for t ≥ 0."""
    a, square = df / 2, t * t
    if square == inf:
        return 0.0
    x, y = df / (df + square), square / (df + square)
    if not x or not y:
        return 0.0 if not x else 0.5
    front = exp(-a * log1p(square / df)) * sqrt(y / pi) * _gamma_ratio(a)
    # The fraction converges fast below the mean of the beta distribution, and the other tail above it.
    if x < (a + 1) / (a + 2.5):
        return front * _fraction(a, 0.5, x) / a / 2
    return 0.5 - front * _fraction(0.5, a, y)


def _gamma_ratio(a: float) -> float:
    """Γ(a + ½) / Γ(a); for large a by Stirling's series of its logarithm."""
    if a < 40:
        return gamma(a + 0.5) / gamma(a)
    r = 1 / (a * a)
    return sqrt(a) * exp((-1 / 8 + r * (1 / 192 + r * (-1 / 640 + r * 17 / 14336))) / a)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of Iₓ(a, b) by Lentz's method (Press et al. 2007, 6.4)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or TINY)
    value = d
    for m in range(1, 10_000):
        for over in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + over * d or TINY)
            c = 1 + over / c or TINY
            value *= c * d
        if abs(c * d - 1) < 4e-16:
            break
    return value
