"""Turns of questions: one caller takes few threads, and others are answered meanwhile."""

import asyncio
import threading
from collections import Counter

import pytest
from tests.service.running import PATIENCE_S, eventually

from tidings.service.problems import HttpProblem
from tidings.service.question_slots import QuestionSlots


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
