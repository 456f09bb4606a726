"""Cohen's kappa against published and reference figures."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.statistics.agreement import kappa

TABLES = st.integers(2, 4).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 30), min_size=size, max_size=size), min_size=size, max_size=size
    )
)


# Values and intervals of statsmodels 0.15, cohens_kappa; the first kappa, 0.40, is the textbook's.
@pytest.mark.parametrize(
    ("table", "value", "low", "high"),
    [
        ([[20, 5], [10, 15]], 0.4, 0.151092290, 0.648907710),
        ([[10, 2, 1], [3, 12, 4], [0, 2, 16]], 0.636143117, 0.457541209, 0.814745025),
    ],
)
def test_kappa_when_a_reference_gives_it_then_it_is_that(
    table: list[list[int]], value: float, low: float, high: float
) -> None:
    found = kappa(table)

    assert (found["value"], found["low"], found["high"]) == pytest.approx((value, low, high), abs=1e-8)
    assert (found["agreed"], found["n"]) == (int(np.trace(table)), int(np.sum(table)))


@given(TABLES)
def test_kappa_when_raters_change_places_then_it_stays_and_holds_its_interval(table: list[list[int]]) -> None:
    found, turned = kappa(table), kappa([list(row) for row in zip(*table, strict=True)])

    if found["value"] is None:
        assert found["why"]
        return
    assert found["value"] == pytest.approx(turned["value"], abs=1e-9)
    assert found["value"] <= 1 + 1e-12
    if found["low"] is not None:
        assert -1 <= found["low"] <= found["value"] <= found["high"] <= 1
        assert (found["low"], found["high"]) == pytest.approx((turned["low"], turned["high"]), abs=1e-6)


def test_kappa_when_every_task_has_one_rating_then_tasks_change_nothing() -> None:
    table = [[20, 5], [10, 15]]
    cells = [(i, j) for i in range(2) for j in range(2) for _ in range(table[i][j])]
    alone = [[[int((i, j) == cell) for j in range(2)] for i in range(2)] for cell in cells]
    found, plain = kappa(alone), kappa(table)

    assert found["clusters"] == plain["clusters"] == 50
    assert (found["low"], found["high"]) == pytest.approx((plain["low"], plain["high"]))


def test_kappa_when_ratings_of_a_task_are_the_same_then_they_tell_as_much_as_one() -> None:
    table = [[20, 5], [10, 15]]
    cells = [(i, j) for i in range(2) for j in range(2) for _ in range(table[i][j])]
    fourfold = [[[4 * ((i, j) == cell) for j in range(2)] for i in range(2)] for cell in cells]
    found, plain, blind = kappa(fourfold), kappa(table), kappa(np.sum(fourfold, axis=0))

    assert (found["value"], found["n"], found["clusters"]) == (pytest.approx(0.4), 200, 50)
    # Student's t over 50 tasks instead of the normal's point, and 50/49.
    width, of_one, too_narrow = (one["high"] - one["low"] for one in (found, plain, blind))
    assert of_one < width < 1.05 * of_one
    assert too_narrow == pytest.approx(of_one / 2)


def test_kappa_when_it_cannot_be_told_then_it_says_why() -> None:
    assert kappa([[0, 0], [0, 0]])["why"] == "nothing was rated by both"
    one_class = kappa([[9, 0], [0, 0]])
    assert (one_class["value"], one_class["agreed"], one_class["n"]) == (None, 9, 9)
    assert "one class" in one_class["why"]
    perfect = kappa([[4, 0], [0, 6]])
    assert (perfect["value"], perfect["low"]) == (1.0, None)
    assert perfect["why"] == "no disagreement to tell an interval from"
    with pytest.raises(ValueError, match="expected a square of counts"):
        kappa([[1, 2]])


def test_statistics_when_loaded_then_neither_scipy_nor_numpy_is() -> None:
    code = (
        "import json, sys, pkgutil, importlib, audit.statistics as s\n"
        "names = [m.name for m in pkgutil.iter_modules(s.__path__)]\n"
        "[importlib.import_module('audit.statistics.' + name) for name in names]\n"
        "print(json.dumps([names, sorted({'numpy', 'scipy'} & set(sys.modules))]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, loaded = json.loads(ran.stdout)

    assert "intervals" in names
    assert loaded == []
