"""What several people say of one row: the majority, and what it weighs."""

import pytest

from audit.verbs.people import agreement_tables, by_subject, majority, post_stratified, unheard
from audit.words.records import HumanLabel


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, None),
        ({"ann": "A"}, "A"),
        ({"ann": "A", "bo": "B"}, None),
        ({"ann": "A", "bo": "B", "cy": "B"}, "B"),
        ({"ann": "A", "bo": "B", "cy": "tie"}, None),
        ({"ann": "tie", "bo": "tie", "cy": "A"}, "tie"),
    ],
)
def test_majority_when_people_speak_then_it_is_what_most_say_or_nothing(
    said: dict[str, str], expected: str | None
) -> None:
    assert majority(said) == expected


def test_labels_when_one_cannot_tell_then_that_says_nothing() -> None:
    labels = [
        HumanLabel("p1", None, who, "preference", value, None, "2026-01-01T00:00:00.000Z")
        for who, value in (("ann", "A"), ("bo", "cannot tell"))
    ]
    assert by_subject(labels, "preference") == {"p1": {"ann": "A"}}
    assert by_subject(labels, "success") == {}


def test_weights_when_some_rows_have_no_label_then_those_of_their_stratum_stand_for_them() -> None:
    strata = ["near", "near", "near", "random", "random"]
    weights = post_stratified(strata, [10, 10, 10, 40, 40], [True, False, True, True, True])
    assert weights == [15, 0, 15, 40, 40]
    assert sum(weights) == 110


def test_unheard_when_a_stratum_has_no_label_then_it_is_named_with_its_rows() -> None:
    strata = ["near", "near", "near", "random", "random"]
    weights = [10 / 3, 10 / 3, 10 / 3, 40, 40]
    assert unheard(strata, weights, [False, False, False, True, False]) == {"near": 10}
    assert unheard(strata, weights, [True, False, False, False, True]) == {}


def test_tables_when_a_class_is_strange_then_it_is_left_out() -> None:
    rated = [("t", "A", "A"), ("u", "A", "B"), ("t", "B", "B"), ("t", None, "A"), ("v", "A", None)]
    assert agreement_tables(rated, ("A", "B")) == [[[1, 0], [0, 1]], [[0, 1], [0, 0]]]
    assert agreement_tables([], ("A", "B")) == [[[0, 0], [0, 0]]]
