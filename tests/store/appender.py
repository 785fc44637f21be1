"""Batches of deliveries, and child processes that write to a store until tests kill them."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tidings import DeadLetter, Delivery, Subscription
from tidings.store import open_store

# A forked child starts in milliseconds; a new interpreter would import for seconds.
_FORK = multiprocessing.get_context("fork")


def delivery(subscriber: str, event: str, at_us: int = 0, sequence: int = 1) -> Delivery:
    """Return a delivery, half of them with content; the store assigns its own sequence number."""
    window = {"name": "sliding", "start": 0, "end": at_us, "size": 1}
    content = '{"title":"it\'s \\u0000 ä"}' if at_us % 2 else None
    return Delivery(subscriber, event, 0.5, 1, window, ("s1",), sequence, at_us, content)


def batch_of(number: int, size: int = 20) -> list[Delivery]:
    """Return a batch that shares half of its events with the previous one."""
    first = number * size // 2
    return [delivery(f"u{n % 3}", f"e{n // 3}", n) for n in range(first, first + size)]


class Child(NamedTuple):
    """A process that writes, and the receiving end of its reports: one per batch."""

    process: Any
    reports: Any

    def finish(self) -> None:
        """Wait for the process to end without an error."""
        self.process.join(120)
        assert self.process.exitcode == 0


@contextmanager
def writing(work: Callable[..., None], *arguments: object) -> Iterator[Child]:
    """Run `append` or `put` in a child process."""
    receiving, sending = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=work, args=(sending.send, *arguments))
    process.start()
    sending.close()
    try:
        yield Child(process, receiving)
    finally:
        process.kill()
        process.join(60)
        receiving.close()


def append(
    report: Callable[[int], None], address: str, query: str, batches: int, size: int
) -> None:
    """Append batches to a store, and report each."""
    with open_store(address) as store:
        for number in range(batches):
            letters = [DeadLetter({"batch": number, "n": n}, "no good") for n in range(5)]
            store.notifications.append(query, number, batch_of(number, size), dead=letters)
            report(number)


def put(report: Callable[[int], None], address: str, name: str, count: int) -> None:
    """Put subscriptions of one subscriber into a store, and report each."""
    with open_store(address) as store:
        for number in range(count):
            store.catalogue.put(Subscription(f"{name}-{number}", name, where=f"n = {number}"))
            report(number)
