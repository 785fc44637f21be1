"""Requests that wait for the pipeline: they hold no threads, and end when they must."""

import asyncio
import threading
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from tests.service.running import PATIENCE_S, client_of, eventually, pipeline_at, server_at

from tidings.errors import StoreError
from tidings.service.problems import HttpProblem
from tidings.service.request_waits import QuestionSlots
from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings
from tidings.store import open_store

# More than the threads that answer requests, of which there are 40.
MANY = 60


def test_many_that_wait_stop_nobody_else(tmp_path: Path) -> None:
    address = str(tmp_path / "tidings.db")
    settings = ServiceSettings(wait_s=PATIENCE_S)
    with server_at(address, settings) as server, open_store(address) as store:
        answers = asyncio.run(_wait_at_once(server, address))
        assert answers == [True] * MANY
        assert store.catalogue.version() == MANY


async def _wait_at_once(server: WebServer, address: str) -> list[bool]:
    """Put subscribers, all of which wait; the pipeline starts after others were answered."""
    url, limits = f"http://127.0.0.1:{server.port}", httpx2.Limits(max_connections=2 * MANY)
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits) as client:

        async def put(number: int) -> bool:
            path, query = f"/v1/subscribers/s{number}", {"wait": "applied"}
            answer = await client.put(path, json={}, params=query)
            return bool(answer.json()["applied"])

        waiting = [asyncio.create_task(put(number)) for number in range(MANY)]
        with open_store(address) as store:
            # All have got so far that they wait.
            await asyncio.to_thread(eventually, lambda: store.catalogue.version() == MANY)
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/v1/subscribers/s0")).json()["id"] == "s0"
        assert not any(task.done() for task in waiting)
        with pipeline_at(address):
            return list(await asyncio.gather(*waiting))


def test_what_takes_too_long_is_said(tmp_path: Path) -> None:
    settings = ServiceSettings(wait_s=0.05)
    with server_at(str(tmp_path / "t.db"), settings) as server, client_of(server) as client:
        put = client.put("/v1/subscribers/ada", json={}, params={"wait": "applied"})
        assert (put.status_code, put.json()) == (201, {"version": 1, "applied": False})
        event = {"id": "e1", "attributes": {}}
        published = client.post("/v1/events", json=event, params={"wait": "delivered"}).json()
        assert (published["accepted"], published["deliveries"]) == (1, None)
        assert client.post("/v1/subscribers/ada/pause").json()["applied"] is None


def test_waiting_goes_on_when_the_store_could_not_be_read(tmp_path: Path) -> None:
    address = str(tmp_path / "t.db")
    with server_at(address) as server, client_of(server) as client:
        tenant = server._app.state.gate.tenants.main
        looks = list[bool]()

        def fail_once() -> None:
            looks.append(True)
            if len(looks) == 1:
                raise StoreError("the disk is away")

        tenant.changed.append(fail_once)
        client.put("/v1/subscribers/ada", json={})
        eventually(lambda: len(looks) > 1)  # although nothing else is written


class Answers:
    """Answers that take until they are let go; counts those under way."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.go = threading.Event()
        self._lock = threading.Lock()

    def answer(self, caller: str) -> str:
        with self._lock:
            self.running[caller] += 1
            self.most[caller] = max(self.most[caller], self.running[caller])
        assert self.go.wait(PATIENCE_S)
        with self._lock:
            self.running[caller] -= 1
        return caller


def test_one_caller_leaves_room_for_others() -> None:
    answers = Answers()

    async def scene() -> list[str]:
        slots = QuestionSlots()
        names = ["ada"] * 10 + ["bob"] * 3
        asked = [asyncio.create_task(slots.run(name, answers.answer, name)) for name in names]
        under_way = {"ada": 2, "bob": 2}
        await asyncio.to_thread(eventually, lambda: answers.running == under_way)
        answers.go.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(scene()) == ["ada"] * 10 + ["bob"] * 3
    assert answers.most == {"ada": 2, "bob": 2}


def test_a_tenant_has_few_at_a_time() -> None:
    answers = Answers()

    async def scene() -> None:
        slots = QuestionSlots()
        names = [f"p{number}" for number in range(9)]
        asked = [asyncio.create_task(slots.run(name, answers.answer, name)) for name in names]
        await asyncio.to_thread(eventually, lambda: answers.running.total() == 4)
        await asyncio.sleep(0.05)
        assert answers.running.total() == 4
        answers.go.set()
        await asyncio.gather(*asked)

    asyncio.run(scene())


def test_too_many_of_one_caller_are_refused_until_some_are_answered() -> None:
    answers = Answers()

    async def scene() -> None:
        slots = QuestionSlots()
        asked = [asyncio.create_task(slots.run("ada", answers.answer, "ada")) for _ in range(50)]
        await asyncio.to_thread(eventually, lambda: answers.running["ada"] == 2)
        with pytest.raises(HttpProblem, match="50 questions are still unanswered") as caught:
            await slots.run("ada", answers.answer, "ada")
        assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})
        answers.go.set()
        await asyncio.gather(*asked)
        assert await slots.run("ada", answers.answer, "ada") == "ada"

    asyncio.run(scene())
