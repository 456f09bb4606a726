"""Position: does the judge say the same when the sides change places, and if not, where does it lean?"""

from collections.abc import Mapping
from typing import Any

from audit.statistics.agreement import mcnemar_p
from audit.statistics.arrays import aligned, counted
from audit.statistics.intervals import mean_interval
from audit.statistics.rates import clustered_rate


def position(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The part `position` of `report --json`, from rows with one number a cluster.

    `both_read`: pairs with both orders read; of these `consistent`, `primacy` (first+first or first+tie) and
    `recency` (second+second or second+tie); `side_named`: answers that name a side, of these `first_named`.
    PC = consistent / pairs, PF = (recency - primacy) / pairs, -1..1 with 0 fair (the counts of Shi et al.,
    arXiv:2406.07791, without their scaling by the worst case); McNemar's exact p of primacy against recency
    takes pairs as independent. Raises ValueError where the parts are more than their whole.
    """
    pairs, primacy, recency = aligned(counts["both_read"], counts["primacy"], counts["recency"])
    counted(primacy + recency, pairs)
    fairness, interval = mean_interval(recency - primacy, pairs, -1.0, 1.0)
    first, second = int(primacy.sum()), int(recency.sum())
    return {
        "both_read": int(pairs.sum()),
        "consistent": clustered_rate(counts["consistent"], pairs),
        "primacy": first,
        "recency": second,
        "preference_fairness": fairness,
        "preference_fairness_interval": interval._asdict(),
        "first_share": clustered_rate(counts["first_named"], counts["side_named"]),
        "mcnemar_p": mcnemar_p(first, second),
    }
