"""What waits for the judges of a config: its pairs and sessions, and no other judge's."""

from sqlalchemy import Connection

from audit.doors import waiting
from audit.pipeline.live import Live
from audit.pipeline.sampled import in_sample
from audit.pipeline.standing import judged_since
from audit.pipeline.workplace import gates_of


def pairs_to_judge(connection: Connection, live: Live) -> list[str]:
    """The pairs that wait for the judges in hand, within the sample."""
    gates = list(gates_of(live.config))
    found = waiting.unjudged(connection, live.run.run_id, live.retry_errors, gates)
    return in_sample(connection, live.run, found, live.config.sample, live.config.seed)


def sessions_to_ask(connection: Connection, live: Live, *, retry: bool) -> list[str]:
    """The sessions of which the first judge in hand is to say how satisfied the customer can be."""
    since = next(iter(judged_since(live.run, list(gates_of(live.config))).values()))
    return waiting.unasked_satisfaction(connection, live.run.run_id, retry, since)
