"""Which rows people look at: every kind has its places, each row its chance, and the chance is known."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.verbs.picking import first_side, picked, places, review_id

SIZES = st.dictionaries(
    st.sampled_from(["random", "near_tie", "inconsistent", "satisfied_failed"]),
    st.integers(1, 300),
    min_size=1,
)


@given(SIZES, st.integers(1, 400))
def test_places_when_shared_out_then_all_are_given_and_no_kind_gets_more_than_it_has(
    sizes: dict[str, int], n: int
) -> None:
    given_places = places(sizes, n)
    assert given_places.keys() == sizes.keys()
    assert sum(given_places.values()) == min(n, sum(sizes.values()))
    for kind, count in given_places.items():
        assert 0 <= count <= sizes[kind]
        # Two at least, where they suffice: one alone tells nothing of how much a kind varies.
        assert n < 2 * len(sizes) or count >= min(2, sizes[kind])


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [
        ({"random": 900, "near_tie": 100}, 40, {"random": 18, "near_tie": 22}),
        ({"random": 1000}, 40, {"random": 40}),
        (
            {"random": 980, "near_tie": 10, "inconsistent": 10},
            40,
            {"random": 20, "near_tie": 10, "inconsistent": 10},
        ),
        ({"random": 5, "near_tie": 5}, 40, {"random": 5, "near_tie": 5}),
    ],
)
def test_places_when_kinds_differ_then_half_go_by_share_and_half_to_those_that_need_a_look(
    sizes: dict[str, int], n: int, expected: dict[str, int]
) -> None:
    assert places(sizes, n) == expected


def test_picked_when_the_seed_is_the_same_then_so_are_they_and_more_of_them_hold_the_fewer() -> None:
    keys = [f"p{number}" for number in range(100)]
    assert picked(reversed(keys), 10, 1) == picked(keys, 10, 1) == picked(keys, 20, 1)[:10]
    assert picked(keys, 10, 1) != picked(keys, 10, 2)


def test_picked_when_done_again_and_again_then_each_key_is_as_likely() -> None:
    counts = Counter(key for seed in range(2000) for key in picked("abcdefghij", 3, seed))
    # 600 each, with a standard deviation of 20.
    assert all(520 < count < 680 for count in counts.values())
    assert len(counts) == 10


def test_first_side_when_drawn_then_it_is_either_as_often() -> None:
    sides = Counter(first_side(f"p{number}", 0) for number in range(1000))
    assert 430 < sides["A"] < 570
    assert first_side("p1", 0) == first_side("p1", 0)


def test_review_id_when_made_then_it_tells_nothing_and_is_the_same_again() -> None:
    assert review_id("run", "x-p1") == review_id("run", "x-p1") != review_id("other", "x-p1")
    assert len({review_id("run", f"p{number}") for number in range(5000)}) == 5000
