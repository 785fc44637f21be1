"""A channel that is down for an hour delays only itself, and catches up in order.

The hour passes on a clock that dispatcher and senders are given; all their pauses read it.
"""

import re
import time
from pathlib import Path

from tests.channels import test_jetstream
from tests.channels.mailbox import Mailbox, mail_server
from tests.channels.sending import declared, deliver, sending
from tests.ports import reserved_port
from tests.proxy import proxy_to
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


def failures(store: Store, name: str) -> int:
    return store.channels.find(name)[0].failures


def streamed(nats: str, name: str) -> list[str]:
    return test_jetstream.events_of(test_jetstream.received(nats, name))


def test_an_outage_of_an_hour(nats: str, tmp_path: Path) -> None:
    """A mail server and a queue are away; another queue gets everything at once meanwhile."""
    for name in ("outage", "away"):
        test_jetstream.add_stream(nats, name)
    person = PersonChannel("mail", "ada@example.org", every="delivery")
    passed_s, events = [0.0], [f"e{number}" for number in range(12)]

    def clock() -> float:
        return time.time() + passed_s[0]

    with (
        reserved_port() as port,
        proxy_to(nats) as proxy,
        open_store(tmp_path / "tidings.db") as store,
    ):
        proxy.down()
        mail = SmtpSettings("127.0.0.1", "t@films.example", port, "none")
        people = ServiceSettings(mail=mail).people
        near = JetStreamTransport((nats,), "outage.x")
        far = JetStreamTransport((f"nats://127.0.0.1:{proxy.port}",), "away.x")
        channels = [declared("nats", near, "near"), declared("nats", far, "far")]
        put_entry(store, EntryDraft("ada", "home", person, verified=True), 0)
        declare(store, channels, 0)
        senders = {**openers(channels), **person_openers(store, "default", people, clock)}
        with sending(store, senders, clock):
            for quarter in range(4):
                new = events[3 * quarter : 3 * quarter + 3]
                deliver(store, quarter, *new, to=("ada",))
                eventually(lambda so_far=3 * quarter + 3: len(streamed(nats, "outage")) == so_far)
                eventually(lambda seen=quarter: failures(store, "far") > seen)
                eventually(lambda: failures(store, "home") > 0)
                assert streamed(nats, "away") == []
                passed_s[0] += QUARTER_S
            proxy.up()
            with mail_server(port=port) as box:
                passed_s[0] += LONGEST_REST_S
                eventually(lambda: len(streamed(nats, "away")) == len(events))
                eventually(lambda: len(events_of(box)) == len(events))
                eventually(lambda: failures(store, "home") == failures(store, "far") == 0)
    assert streamed(nats, "outage") == events
    assert streamed(nats, "away") == events
    assert events_of(box) == events
