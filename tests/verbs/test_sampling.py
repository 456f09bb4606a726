"""The sample: each stratum has its share, and no order of the items matters."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from audit.verbs.sampling import stratified

ITEMS = st.dictionaries(st.text(max_size=8), st.integers(0, 5), max_size=60)


@given(ITEMS, st.integers(1, 70), st.integers(-3, 3), st.randoms())
def test_sample_when_drawn_then_each_stratum_has_its_share(
    stratum_of: dict[str, int], size: int, seed: int, random: object
) -> None:
    items = [(stratum, key) for key, stratum in stratum_of.items()]
    drawn = stratified(items, size, seed)
    assert len(drawn) == min(size, len(items))
    assert drawn <= set(stratum_of)
    random.shuffle(items)  # type: ignore[attr-defined]
    assert stratified(items, size, seed) == drawn
    held, of_all = Counter(stratum_of[key] for key in drawn), Counter(stratum_of.values())
    for stratum, count in of_all.items():
        assert abs(held[stratum] - len(drawn) * count / len(items)) < 1


def test_sample_when_the_seed_differs_then_so_does_it() -> None:
    items = [(0, str(number)) for number in range(1000)]
    first, second = (stratified(items, 100, seed) for seed in (0, 1))
    assert len(first & second) < 30


def test_sample_when_one_stratum_is_large_and_many_are_small_then_the_small_ones_are_there_too() -> None:
    items = [(0, str(number)) for number in range(55)] + [(number, f"s{number}") for number in range(1, 6)]
    drawn = stratified(items, 30, 0)
    assert len(drawn & {f"s{number}" for number in range(1, 6)}) in (2, 3)
