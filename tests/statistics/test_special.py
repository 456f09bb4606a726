"""Plain arithmetic gives what scipy gives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, stdtrit

from audit.statistics.special import mills, t_975


@given(st.floats(1, 1e9))
def test_quantile_when_compared_with_scipys_then_is_the_same(freedom: float) -> None:
    assert t_975(freedom) == pytest.approx(float(stdtrit(freedom, 0.975)), rel=1e-8)


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.7062047362), (2, 4.3026527297), (30, 2.0422724563)])
def test_quantile_when_looked_up_in_a_table_then_is_what_stands_there(freedom: int, expected: float) -> None:
    assert t_975(freedom) == pytest.approx(expected, rel=1e-10)


@given(st.floats(-1e6, 37))
def test_mills_when_compared_with_scipys_then_is_the_same_also_far_out(x: float) -> None:
    expected = float(np.exp(-x * x / 2 - math.log(2 * math.pi) / 2 - log_ndtr(x)))
    # Far out scipy's logarithm has lost digits, and the ratio is -x.
    assert mills(x) == pytest.approx(expected if x > -1e3 else -x, rel=1e-6 if x < -100 else 1e-9)
