"""The figures of a store at one moment: how much it holds, and how much is waiting."""

from typing import Final, NamedTuple

from tidings.store.protocol import Database, Session, read_row

_QUERY: Final = """
    SELECT
        i.last,
        coalesce((SELECT upto FROM steps ORDER BY number DESC LIMIT 1), 0),
        (SELECT version FROM catalogue),
        coalesce((SELECT version FROM steps ORDER BY number DESC LIMIT 1), 0),
        coalesce((SELECT max(number) FROM steps), 0),
        (SELECT accepted_us FROM publications WHERE number = 1 +
            coalesce((SELECT upto FROM steps ORDER BY number DESC LIMIT 1), 0)),
        (SELECT coalesce(sum(last), 0) FROM inboxes),
        (SELECT count(*) FROM letters WHERE kind = 'late' AND taken_us IS NULL),
        (SELECT count(*) FROM letters WHERE kind = 'dead' AND taken_us IS NULL)
    FROM intake AS i"""
_WEBHOOKS: Final = """
    SELECT
        count(*),
        coalesce(sum(CASE WHEN w.disabled IS NULL THEN 0 ELSE 1 END), 0),
        coalesce(sum(CASE WHEN w.disabled IS NULL AND w.failures > 0 THEN 1 ELSE 0 END), 0),
        coalesce(sum(CASE WHEN w.disabled IS NULL AND i.last > w.reached
            THEN i.last - w.reached ELSE 0 END), 0),
        (SELECT count(f.next_us) FROM channel_failures AS f JOIN channels AS c ON c.key = f.key
            WHERE c.kind = 'webhook'),
        (SELECT count(*) - count(f.next_us) FROM channel_failures AS f
            JOIN channels AS c ON c.key = f.key WHERE c.kind = 'webhook')
    FROM channels AS w LEFT JOIN inboxes AS i ON i.subscriber = w.subscriber
    WHERE w.kind = 'webhook'"""


class WebhookFigures(NamedTuple):
    """Counts of webhooks: all, disabled and failing.

    And of messages: unsent, to retry, given up.
    """

    total: int
    disabled: int
    failing: int
    outbox: int
    retries: int
    given_up: int


class StoreFigures(NamedTuple):
    """Numbers of the last publication and the last processed one, versions, and counts.

    `waiting_since_us` is the time at which the first waiting publication was accepted, or None.
    """

    published: int
    taken: int
    version: int
    applied: int
    step: int
    waiting_since_us: int | None
    delivered: int
    late: int
    dead: int
    webhooks: WebhookFigures

    @property
    def waiting(self) -> int:
        """Publications that the pipeline has not processed."""
        return self.published - self.taken

    def lag_s(self, now_us: int) -> float:
        """Return how long the first waiting publication has been waiting."""
        since_us = self.waiting_since_us
        return 0.0 if since_us is None else max(0, now_us - since_us) / 1_000_000


def read_figures(database: Database) -> StoreFigures:
    """Return the figures of a store."""

    def read(session: Session) -> StoreFigures:
        last, processed, version, applied, step, since_us, *counts = session.rows(_QUERY)[0]
        delivered, late, dead = map(int, counts)  # PostgreSQL sums to decimals
        webhooks = WebhookFigures(*map(int, session.rows(_WEBHOOKS)[0]))
        taken_by = (last, processed, version, applied, step, since_us)
        return read_row(StoreFigures, (*taken_by, delivered, late, dead, webhooks))

    return database.read(read)
