"""Rows that people labelled, among all rows of a run: how much what is told from them varies.

Two things vary. Another run would have other tasks: so what a task adds, labelled or not, is summed over its
rows. And people might have been sent other rows: so labels vary within their stratum (the two phases of
Särndal, Swensson & Wretman, Model Assisted Survey Sampling, 1992, chapter 9).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from audit.statistics.arrays import Z95, aligned, array
from audit.statistics.intervals import degrees_of_freedom, t_quantile

if TYPE_CHECKING:
    from audit.statistics.arrays import Array


class Sample(NamedTuple):
    """`labels`, `said` 0/1 and `weights`, shape (labels,); `flagged` of `rows` are said 1, shape (tasks,).

    `tasks`: the place of each label's task in `flagged` and `rows`; NULL where rows are independent, and
    those two then hold one number. `strata`: the place of each label's stratum in `heard`, which is how many
    labels there are of each; NULL where labels are taken as drawn alone.
    """

    labels: "Array"
    said: "Array"
    weights: "Array"
    tasks: "Array | None"
    flagged: "Array"
    rows: "Array"
    strata: "Array | None"
    heard: "Array | None"

    @property
    def share(self) -> float:
        """How many of all rows are said 1, 0 to 1."""
        return float(self.flagged.sum() / self.rows.sum()) if self.rows.sum() else 0.0

    @property
    def typical(self) -> float:
        """The weight that counts for the variance, sum w^2 / sum w; with equal weights that one."""
        return float(self.weights @ self.weights / self.weights.sum())


def sample(
    labels: Any,
    said: Any,
    weights: Any,
    flagged: Any,
    rows: Any,
    tasks: Any = None,
    strata: Any = None,
    heard: Any = None,
) -> Sample:
    """A `Sample`; `flagged` and `rows` are numbers where there are no `tasks`.

    Tasks of at most one row each are no clusters. `heard` NULL: no label of a stratum but these. Raises
    ValueError for rows of different lengths and for a task or stratum that is not there.
    """
    import numpy as np

    y, f, w = aligned(labels, said, weights)
    part, whole = aligned(np.atleast_1d(flagged), np.atleast_1d(rows))
    of, drawn = (None if one is None else array(one).astype(int) for one in (tasks, strata))
    if drawn is not None:
        heard = np.bincount(drawn) if heard is None else array(heard)
    for places, there in ((of, len(whole)), (drawn, 0 if heard is None else len(heard))):
        if places is not None and (len(places) != len(y) or ((places < 0) | (places >= there)).any()):
            raise ValueError(f"expected {len(y)} places from 0 up to {there - 1}")
    if of is None or not len(whole) or whole.max() <= 1:
        of, part, whole = None, part.sum(keepdims=True), whole.sum(keepdims=True)
    return Sample(y, f, w, of, part, whole, drawn, heard)


def covariance(given: Sample, influence: "Array", of_share: "Array") -> "Array":
    """The covariance of k figures where rows are independent, shape (k, k).

    `influence`, shape (labels, k): what a label moves them by, per row that it stands for; `of_share`, shape
    (k,): what the share of all rows that are said 1 moves them by. A labelled row is one of all: it moves
    them twice, and the product counts.
    """
    import numpy as np

    whole = float(given.rows.sum())
    own = np.outer(given.said - given.share, of_share) / whole
    w = given.weights[:, None]
    found: Array = np.outer(of_share, of_share) * given.share * (1 - given.share) / whole
    twice = (w * influence).T @ own
    found += twice + twice.T
    if given.strata is None or given.heard is None:
        n = len(influence)
        found += n / max(n - 1, 1) * (w * influence).T @ (w * influence)
        return found
    found += influence.T @ (w * influence)
    for stratum, n in enumerate(given.heard):
        of = given.strata == stratum
        if of.any():
            sums, weight = influence[of].sum(axis=0), float(given.weights[of].mean())
            # One label alone tells nothing of how much they vary: it counts as if it were not expected.
            centred = influence[of].T @ influence[of] - (np.outer(sums, sums) / n if n > 1 else 0)
            found += weight * max(weight - 1, 0) * n / max(n - 1, 1) * centred
    return found


def of_tasks(given: Sample, influence: "Array", of_share: "Array") -> tuple["Array", "Array"]:
    """What clustering adds to that covariance, shape (k, k), and what each task moves the figures by, shape
    (tasks, k): J/(J-1) sum over tasks of the products of different rows of one task. 0 without clusters.
    """
    import numpy as np

    width = len(of_share)
    if given.tasks is None:
        return np.zeros((width, width)), np.zeros((0, width))
    whole, share = float(given.rows.sum()), given.share
    moved = given.weights[:, None] * influence
    tasks = np.outer(given.flagged - share * given.rows, of_share) / whole
    np.add.at(tasks, given.tasks, moved)
    tasks = tasks[given.rows > 0]
    twice = moved.T @ (np.outer(given.said - share, of_share) / whole)
    alone = np.outer(of_share, of_share) * share * (1 - share) / whole + moved.T @ moved + twice + twice.T
    return len(tasks) / max(len(tasks) - 1, 1) * (tasks.T @ tasks - alone), tasks


def quantile(tasks: "Array") -> float:
    """How many standard errors what tasks add goes each way: Student's t, of what each moves a figure by."""
    return t_quantile(degrees_of_freedom(tasks)) if len(tasks) > 1 else Z95
