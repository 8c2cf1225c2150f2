"""Student's t and Fisher's F; pure arithmetic, so that no statistics package has to be installed."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by the modified Lentz method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, 400):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 + step * d
            c = 1.0 + step / c
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), 0 <= x <= 1."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(x, a, b) / a
    return 1.0 - front * _beta_fraction(1.0 - x, b, a) / b


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) of Student's t with `df` degrees of freedom."""
    tail = 0.5 * incomplete_beta(df / (df + t * t), df / 2.0, 0.5)
    return tail if t < 0 else 1.0 - tail


@lru_cache(maxsize=4096)
def t_factor(level: float, df: float) -> float:
    """The two-sided factor: `level` of Student's t with `df` degrees of freedom lies within ± this."""
    if not 0.0 < level < 1.0 or df <= 0:
        raise ValueError(f"no t factor for level {level} with {df} degrees of freedom")
    target = 0.5 + level / 2.0
    low, high = 0.0, 1.0
    while t_cdf(high, df) < target:
        low, high = high, high * 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if t_cdf(middle, df) < target else (low, middle)
    return (low + high) / 2.0


def p_value(t: float, df: float) -> float:
    """Two-sided: how often equal arms come apart by |t| or more."""
    return 2.0 * t_cdf(-abs(t), df)


@lru_cache(maxsize=512)
def f_quantile(level: float, df1: float, df2: float) -> float:
    """The value that an F variable with `df1` and `df2` degrees of freedom stays below with probability `level`."""
    if not 0.0 < level < 1.0 or df1 <= 0 or df2 <= 0:
        raise ValueError(f"no F quantile for level {level} with {df1} and {df2} degrees of freedom")
    low, high = 0.0, 1.0
    while _f_cdf(high, df1, df2) < level:
        low, high = high, high * 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _f_cdf(middle, df1, df2) < level else (low, middle)
    return (low + high) / 2.0


def _f_cdf(x: float, df1: float, df2: float) -> float:
    return incomplete_beta(df1 * x / (df1 * x + df2), df1 / 2.0, df2 / 2.0)
