"""Kill -9 of the process that sends mail: every delivery is in one mail, which may come again."""

import random
import re
import time
from collections import defaultdict
from functools import partial
from threading import Event as Flag
from typing import Any

import pytest
from tests.channels.mailbox import Mailbox, mail_server
from tests.kill.process import KILLS
from tests.kill.test_service import FORK
from tests.kill.test_webhooks import LEASE_S
from tests.service.running import eventually
from tests.store.appender import delivery

from tidings.channels import Dispatcher
from tidings.channels.address_book import EntryDraft, put_entry
from tidings.channels.person_channel import PersonChannel
from tidings.channels.person_senders import person_openers
from tidings.channels.smtp import SmtpSettings
from tidings.service.settings import ServiceSettings
from tidings.store import open_store


def dispatch(address: str, port: int, passed_s: Any) -> None:
    settings = ServiceSettings(mail=SmtpSettings("127.0.0.1", "t@films.example", port, "none"))

    def clock() -> float:
        return time.time() + float(passed_s.value)

    with open_store(address) as store:
        openers = person_openers(store, "default", settings.people, clock)
        Dispatcher(store, openers, clock).run(Flag())


def arrived(box: Mailbox) -> dict[str, set[bytes]]:
    """Return what came, by Message-ID: the mails as they were written."""
    found = defaultdict(set)
    for mail, raw in zip(list(box.mails), list(box.raw), strict=False):
        found[mail["Message-ID"]].add(raw)
    return found


def events_of(raw: bytes) -> list[str]:
    return re.findall(r"^\d+\. (e\d+)\r?$", raw.decode(), re.MULTILINE)


def has(box: Mailbox, event: str) -> bool:
    return any(event in events_of(raw) for raw in list(box.raw))


@pytest.mark.kill
def test_kills_of_the_dispatcher_put_each_delivery_into_one_mail(address: str) -> None:
    kills, chance, passed_s = KILLS or 2, random.Random(5), FORK.Value("d", 0.0)
    person = PersonChannel("mail", "ada@example.org", every="delivery")
    delivered = 0
    with open_store(address) as store, mail_server() as box:
        put_entry(store, EntryDraft("ada", "home", person, verified=True), 0)
        for _ in range(kills + 1):
            arguments = (address, box.port, passed_s)
            process = FORK.Process(target=dispatch, args=arguments, daemon=True)
            process.start()
            for _ in range(3):
                event = f"e{delivered}"
                store.notifications.append("q", delivered, [delivery("ada", event)])
                delivered += 1
                eventually(partial(has, box, event))
            time.sleep(chance.uniform(0, 0.02))
            process.kill()
            process.join(30)
            passed_s.value += LEASE_S
        mails = arrived(box)
    assert all(len(versions) == 1 for versions in mails.values())
    events = [event for [raw] in mails.values() for event in events_of(raw)]
    assert sorted(events) == sorted(f"e{number}" for number in range(delivered))
    assert len(box.raw) <= len(mails) + kills
