"""Streamed rows as columns: the values they had, names as codes in the order of the names."""

from audit.statistics.arrays import columns, grouped


def test_columns_when_rows_are_streamed_then_each_has_its_values_and_names_are_numbered_in_order() -> None:
    rows = [("b", 0.5, 3), (None, 0.25, 4), ("a", 1.5, 5), ("b", 0.0, 6)] * 6000
    (names, floats, wholes), (known,) = columns(iter(rows), "cfi")
    assert known == ["a", "b", None]
    assert names.groups == 3
    assert [known[code] for code in names.numbers.tolist()] == [row[0] for row in rows]
    assert floats.tolist() == [row[1] for row in rows]
    assert wholes.tolist() == [row[2] for row in rows]
    assert [sums.tolist() for sums in grouped(names, wholes)] == [[30_000.0, 54_000.0, 24_000.0]]


def test_columns_when_there_is_no_row_then_they_are_empty() -> None:
    (names, wholes), (known,) = columns([], "ci")
    assert (known, names.groups, len(names.numbers), len(wholes)) == ([], 0, 0, 0)
