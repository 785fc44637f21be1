"""A process that appends batches, or puts subscriptions, and tells each; tests start and kill it.

appender.py ADDRESS append QUERY BATCHES SIZE
appender.py ADDRESS put NAME COUNT
"""

import sys
from collections.abc import Callable

from tidings import DeadLetter, Delivery, Subscription
from tidings.store import Store, open_store


def delivery(subscriber: str, event: str, at_us: int = 0, sequence: int = 1) -> Delivery:
    """Make a delivery; the store gives it a sequence of its own."""
    window = {"name": "sliding", "start": 0, "end": at_us, "size": 1}
    return Delivery(subscriber, event, 0.5, 1, window, ("s1",), sequence, at_us)


def batch_of(number: int, size: int = 20) -> list[Delivery]:
    """Make a batch that shares half of its events with the one before."""
    first = number * size // 2
    return [delivery(f"u{n % 3}", f"e{n // 3}", n) for n in range(first, first + size)]


def append(store: Store, query: str, batches: str, size: str) -> None:
    for number in range(int(batches)):
        letters = [DeadLetter({"batch": number, "n": n}, "no good") for n in range(5)]
        store.notifications.append(query, number, batch_of(number, int(size)), dead=letters)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def put(store: Store, name: str, count: str) -> None:
    for number in range(int(count)):
        store.catalogue.put(Subscription(f"{name}-{number}", name, where=f"n = {number}"))


VERBS: dict[str, Callable[..., None]] = {"append": append, "put": put}


def main(address: str, verb: str, *rest: str) -> None:
    with open_store(address) as store:
        VERBS[verb](store, *rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
