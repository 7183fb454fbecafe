"""Student's t as functions of single numbers, to nearly the last digit of a float.

With a = df/2, x = df / (df + t²) and y = t² / (df + t²), P(T > t) = ½ Iₓ(a, ½) and P(0 < T < t) = ½ I_y(½, a)
for t > 0: halves of the regularised incomplete beta function (Abramowitz & Stegun 1964, 26.7.1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, gamma, inf, log, log1p, nan, pi, sqrt
from statistics import NormalDist

NORMAL = NormalDist()
REMEMBERED = 4096
"""Results that are kept: the figures of a run have the same degrees of freedom again and again."""
STEPS = 10_000
"""Terms of a series or a fraction: those of a float converge after a few dozen."""
SMALLEST = 2.0**-53
TINY = 2.0**-1022
"""Tails below it have lost digits of their own: their quantile is called infinite."""


def t_cdf(t: float, df: float) -> float:
    """P(T ≤ t), in the lower tail with full relative precision."""
    if not df > 0 or t != t:
        return nan
    beyond = _beyond(abs(t), df)
    return beyond if t < 0 else 1 - beyond


@lru_cache(REMEMBERED)
def t_quantile(quantile: float, df: float) -> float:
    """The t with P(T ≤ t) = quantile; infinite where it is beyond the largest float.

    In the tails it solves P(T > t) = 1 − quantile, near the middle P(0 < T < t) = quantile − ½.
    """
    if not (df > 0 and 0 <= quantile <= 1):
        return nan
    if 0.25 <= quantile <= 0.75:
        share = abs(quantile - 0.5)
        if not share:
            return 0.0
        # P(0 < T < t) is at most t times the density at 0.
        t = _newton(_within, share, share / _density(0.0, df), df)
    else:
        t = _tail_quantile(min(quantile, 1 - quantile), df)
    return t if quantile > 0.5 else -t


def _tail_quantile(tail: float, df: float) -> float:
    """The t > 0 with P(T > t) = tail, which is less than a quarter.

    It is at least the normal distribution's, and at least that with xᵃ / (a B(a, ½)) = 2 tail, because
    Iₓ(a, ½) is at least xᵃ / (a B(a, ½)); both are equal as x goes to 0.
    """
    if tail < TINY:
        return inf
    a = df / 2
    log_x = (log(2 * tail) + log(a) - log(_beta_inverse(a))) / a
    if log_x < -80:
        return sqrt(df) * exp(-log_x / 2) if log_x > -1400 else inf
    power = sqrt(df * (exp(-log_x) - 1)) if log_x < 0 else 0.0
    return _newton(_beyond, tail, max(power, -NORMAL.inv_cdf(tail)), df)


def _newton(function: Callable[[float, float], float], probability: float, t: float, df: float) -> float:
    """The t at which a function of t and df, `_beyond` or `_within`, has the probability.

    Newton's method for ln t and the logarithm of the function, which is concave: from a start below the root
    it does not run away.
    """
    slope = 1 if function is _within else -1
    for _ in range(100):
        value = function(t, df)
        step = slope * log(probability / value) * value / (t * _density(t, df))
        t *= exp(step)
        if abs(step) < 1e-9:  # what is left is about its square
            break
    return t


def _density(t: float, df: float) -> float:
    """x^((df + 1)/2) / (√df B(a, ½))."""
    return exp(-(df + 1) / 2 * log1p(t * t / df)) * _beta_inverse(df / 2) / sqrt(df)


def _beyond(t: float, df: float) -> float:
    """P(T > t) for t ≥ 0: from the fraction where that converges fast, else what the series leaves of ½."""
    return _fraction(t, df) if _is_far(t, df) else 0.5 - _series(t, df)


def _within(t: float, df: float) -> float:
    """P(0 < T < t)."""
    return 0.5 - _fraction(t, df) if _is_far(t, df) else _series(t, df)


def _is_far(t: float, df: float) -> bool:
    """Whether x < (a + 1) / (a + 5/2), the mean of the beta distribution with one more on either side."""
    return t * t * (df + 2) > 3 * df


def _series(t: float, df: float) -> float:
    """½ I_y(½, a) = y^½ xᵃ / B(a, ½) · Σ (a + ½)ₙ / (3/2)ₙ · yⁿ (Abramowitz & Stegun 1964, 26.5.4)."""
    a, y = df / 2, t * t / (df + t * t)
    term = total = 1.0
    for n in range(STEPS):
        term *= (a + 0.5 + n) / (1.5 + n) * y
        total += term
        if term < SMALLEST * total:
            break
    return _front(t, df) * total


def _fraction(t: float, df: float) -> float:
    """½ Iₓ(a, b) with b = ½, by the continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) of xᵃ yᵇ / B(a, b) over it.

    aₘ = (a + m − 1)(a + b + m − 1) m (b − m) x² / (a + 2m − 1)²
    bₘ = m + m (b − m) x / (a + 2m − 1) + (a + m)(a y − b x + 1 + m (2 − x)) / (a + 2m + 1)

    (DiDonato & Morris 1992, equation 9), evaluated by Lentz's method.
    """
    a, b, square = df / 2, 0.5, t * t
    if square == inf:
        return 0.0
    x, y = df / (df + square), square / (df + square)

    def denominator(m: int) -> float:
        last = (a + m) * (a * y - b * x + 1 + m * (2 - x)) / (a + 2 * m + 1)
        return m + m * (b - m) * x / (a + 2 * m - 1) + last if m else last

    value = c = denominator(0)
    d = 0.0
    for m in range(1, STEPS):
        over = (a + m - 1) * (a + b + m - 1) * m * (b - m) * x * x / (a + 2 * m - 1) ** 2
        below = denominator(m)
        d = 1 / (below + over * d)
        c = below + over / c
        value *= c * d
        if abs(c * d - 1) < 2 * SMALLEST:
            break
    return _front(t, df) / value / 2


def _front(t: float, df: float) -> float:
    """√y xᵃ / B(a, ½)."""
    square = t * t
    return sqrt(square / (df + square)) * exp(-df / 2 * log1p(square / df)) * _beta_inverse(df / 2)


def _beta_inverse(a: float) -> float:
    """1 / B(a, ½) = Γ(a + ½) / (Γ(a) √π); for large a by Stirling's series of ln Γ(a + ½) − ln Γ(a)."""
    if a < 40:
        return gamma(a + 0.5) / gamma(a) / sqrt(pi)
    r = 1 / (a * a)
    series = (-1 / 8 + r * (1 / 192 + r * (-1 / 640 + r * (17 / 14336 - r * 31 / 18432)))) / a
    return sqrt(a / pi) * exp(series)
