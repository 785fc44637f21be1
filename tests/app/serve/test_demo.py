"""The playground: the first visit shows life, and a store of somebody else is left alone."""

from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Flag
from typing import Final

import pytest

from tidings.app.serve.demo import PEOPLE, Playground
from tidings.errors import StoreError
from tidings.policy import Subscriber
from tidings.store import open_store

# Dora is not disturbed at night, so a store that is filled then has little for her.
AFTERNOON: Final = datetime(2024, 5, 14, 16, 30, tzinfo=UTC).timestamp()


def test_a_new_store_is_filled_decided_and_flows(tmp_path: Path) -> None:
    address = str(tmp_path / "demo.db")
    playground = Playground(address, clock=lambda: AFTERNOON)
    playground.prepare(past=400)
    with open_store(address) as store:
        assert store.log.last().upto == store.publications.last() == 400
        assert (store.letters.count("late"), store.letters.count("dead")) == (0, 0)
        inboxes = {person.name: store.notifications.inbox(person.name).last for person in PEOPLE}
        assert min(inboxes[name] for name in ("ada", "chen", "dora")) > 5
        [delivery] = store.notifications.after("ada", 0, limit=1)
        assert delivery.content is not None
        assert set(delivery.content) == {"title", "summary"}
        stop = Flag()
        stop.set()
        playground.flow(stop)
        assert store.publications.last() == 401
    Playground(address).prepare(past=400)
    with open_store(address) as store:
        assert store.publications.last() == 401, "a playground that exists goes on"


def test_a_store_of_somebody_else_is_refused(tmp_path: Path) -> None:
    address = str(tmp_path / "mine.db")
    with open_store(address) as store:
        store.catalogue.load([Subscriber("me")])
    with pytest.raises(StoreError, match="already has subscribers; --demo needs a new store"):
        Playground(address).prepare()
