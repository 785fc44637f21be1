"""A channel that is down for an hour delays only itself, and catches up in order.

The hour passes on a clock that dispatcher and senders are given; all their pauses read it.
"""

import json
import re
import time
from pathlib import Path

from tests.channels import test_jetstream
from tests.channels.mailbox import Mailbox, mail_server
from tests.channels.sending import declared, deliver, sending
from tests.service.running import eventually

from tidings.channels.address_book import EntryDraft, put_entry
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.person_channel import PersonChannel
from tidings.channels.person_senders import person_openers
from tidings.channels.registry import declare, openers
from tidings.channels.smtp import SmtpSettings
from tidings.service.settings import ServiceSettings
from tidings.store import Store, open_store

QUARTER_S = 900
LONGEST_REST_S = 3600
"""After a failure, mail is tried again within an hour."""


def events_of(box: Mailbox) -> list[str]:
    """Return the events of all mails, in the order in which they came."""
    found = [re.findall(r"^\d+\. (e\d+)\r?$", raw.decode(), re.MULTILINE) for raw in [*box.raw]]
    return [event for events in found for event in sorted(events, key=lambda name: int(name[1:]))]


def failures(store: Store) -> int:
    return next(each.failures for each in store.channels.find() if each.kind == "mail")


def test_an_outage_of_an_hour(nats: str, tmp_path: Path) -> None:
    test_jetstream.add_stream(nats, "outage")
    channel = declared("nats", JetStreamTransport((nats,), "outage.x"), "stream")
    person = PersonChannel("mail", "ada@example.org", every="delivery")
    passed_s, events = [0.0], [f"e{number}" for number in range(12)]

    def clock() -> float:
        return time.time() + passed_s[0]

    def streamed() -> list[str]:
        return [json.loads(each.data)["event"] for each in test_jetstream.received(nats, "outage")]

    with mail_server() as before:
        port = before.port
    settings = ServiceSettings(mail=SmtpSettings("127.0.0.1", "t@films.example", port, "none"))
    with open_store(tmp_path / "tidings.db") as store:
        put_entry(store, EntryDraft("ada", "home", person, verified=True), 0)
        declare(store, [channel], 0)
        senders = {
            **openers([channel]),
            **person_openers(store, "default", settings.people, clock),
        }
        with sending(store, senders, clock):
            for quarter in range(4):
                new = events[3 * quarter : 3 * quarter + 3]
                deliver(store, quarter, *new, to=("ada",))
                eventually(lambda so_far=3 * quarter + 3: len(streamed()) == so_far)
                eventually(lambda: failures(store) > 0)
                passed_s[0] += QUARTER_S
            with mail_server(port=port) as box:
                passed_s[0] += LONGEST_REST_S
                eventually(lambda: len(events_of(box)) == len(events))
    assert streamed() == events
    assert events_of(box) == events
