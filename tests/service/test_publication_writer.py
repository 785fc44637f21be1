"""One commit for the publications of many requests; each learns its own results."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tidings.errors import StoreError
from tidings.model.records import Event
from tidings.service.publication_writer import PublicationWriter
from tidings.store.publications import NewPublication


class Store:
    """Publications that are held until the test lets them go; ids are new once."""

    def __init__(self) -> None:
        self.calls, self.known = list[list[str]](), set[str]()
        self.is_writing, self.may_write = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def accept(self, publications: Sequence[NewPublication], now_us: int) -> list[bool]:
        self.is_writing.set()
        assert self.may_write.wait(60)
        names = [publication.event.id for publication in publications]
        self.calls.append(names)
        if self.error is not None:
            raise self.error
        new = list[bool]()
        for name in names:
            new.append(name not in self.known)
            self.known.add(name)
        assert now_us > 1_600_000_000 * 10**6
        return new


def forms(*names: str) -> list[NewPublication]:
    return [NewPublication(Event(name, {}, 1)) for name in names]


class Request(threading.Thread):
    """A request in a thread."""

    def __init__(self, writer: PublicationWriter, *names: str) -> None:
        super().__init__(daemon=True)
        self.writer, self.names = writer, names
        self.new: list[bool] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.new = self.writer.accept(forms(*self.names))
        except StoreError as error:
            self.error = error


def writing_together(store: Store, *requests: tuple[str, ...]) -> list[Request]:
    """Let the first request write, and the others wait; then let all go on."""
    writer: Any = PublicationWriter(store)  # type: ignore[arg-type]
    threads = [Request(writer, *names) for names in requests]
    threads[0].start()
    assert store.is_writing.wait(60)
    for number, thread in enumerate(threads[1:], start=1):
        thread.start()
        while len(writer._waiting) < number:
            thread.join(0.001)
    store.may_write.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return threads


def test_one_request_is_written_at_once() -> None:
    store = Store()
    store.may_write.set()
    writer = PublicationWriter(store)  # type: ignore[arg-type]
    assert writer.accept(forms("a", "b", "a")) == [True, True, False]
    assert writer.accept(forms("b", "c")) == [False, True]
    assert writer.accept([]) == []
    assert store.calls == [["a", "b", "a"], ["b", "c"], []]


def test_requests_that_come_meanwhile_are_written_together() -> None:
    store = Store()
    first, second, third, fourth = writing_together(store, ("a",), ("b", "a", "c"), (), ("c", "d"))
    assert store.calls == [["a"], ["b", "a", "c", "c", "d"]]
    assert first.new == [True]
    assert second.new == [True, False, True]
    assert third.new == []
    assert fourth.new == [False, True]


def test_an_error_is_that_of_every_request_it_concerns() -> None:
    store = Store()
    store.error = StoreError("the disk is full")
    requests = writing_together(store, ("a",), ("b",), ("c",))
    assert [str(request.error) for request in requests] == ["the disk is full"] * 3
    store.error = None
    writer = requests[0].writer
    assert writer.accept(forms("a")) == [True]


def test_any_error_reaches_the_request() -> None:
    store = Store()
    store.may_write.set()
    store.error = RuntimeError("unexpected")
    with pytest.raises(RuntimeError, match="unexpected"):
        PublicationWriter(store).accept(forms("a"))  # type: ignore[arg-type]
