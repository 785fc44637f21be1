"""Kill -9 of the process that sends webhooks: every message comes, and repetitions have its id."""

import json
import random
import time
from threading import Event as Flag
from typing import Any

import pytest
from tests.kill.process import KILLS
from tests.kill.test_service import FORK
from tests.service.receiving import receiver
from tests.service.running import eventually
from tests.store.appender import delivery

from tidings.channels import Dispatcher
from tidings.channels.webhook import webhooks
from tidings.channels.webhook_target import TargetRules
from tidings.store import open_store
from tidings.store.webhooks import WEBHOOK

LEASE_S = 11
"""After a kill, another dispatcher waits until the lease of the first one ends."""


def dispatch(address: str, passed_s: Any) -> None:
    rules, clock = TargetRules.of(["*"], ["127.0.0.0/8"]), lambda: time.time() + passed_s.value
    with open_store(address) as store:
        Dispatcher(store, {WEBHOOK: webhooks(rules, clock)}, clock).run(Flag())


@pytest.mark.kill
def test_kills_of_the_dispatcher_lose_no_message(address: str) -> None:
    kills, chance, passed_s = KILLS or 3, random.Random(3), FORK.Value("d", 0.0)
    messages = 20 * kills
    with open_store(address) as store, receiver() as hook:
        store.webhooks.put("ada", "hook", hook.url, 0)
        events = [delivery("ada", f"e{number}") for number in range(messages)]
        store.notifications.append("q", 1, events)
        for nth in range(kills + 1):
            process = FORK.Process(target=dispatch, args=(address, passed_s), daemon=True)
            process.start()
            target = messages if nth == kills else min(messages, len(hook.received) + 10)
            eventually(lambda wanted=target: len({*ids(hook.received)}) >= wanted)
            time.sleep(chance.uniform(0, 0.02))
            process.kill()
            process.join(30)
            passed_s.value += LEASE_S
        found = ids(hook.received)
        assert len(found) <= messages + kills  # each kill repeats what was under way, no more
        bodies = {(message.headers["webhook-id"], message.body) for message in hook.received}
        assert len(bodies) == messages
        sequences = [json.loads(body)["data"]["sequence"] for _, body in sorted(bodies)]
        assert sorted(sequences) == [*range(1, messages + 1)]


def ids(received: list[Any]) -> list[str]:
    return [message.headers["webhook-id"] for message in received]
