"""A slider on the page: what the feed would have been, with the saved policy and the tried one.

python bench/preview.py [--publications 5000] [--moves 30] [--quick]

A web server in this process has a store with films as recent publications, and one subscriber. Each
move of the slider asks `POST /v1/preview` to compare another policy with the saved one; half of
them after another publication, so that nothing is kept from the move before. `ms` is the time to
the answer, `cpu_ms` the CPU time of the process for it; `engine_cpu_ms` is that of two engines that
get all publications again, whose deliveries are the same. The bar is 300 ms. Results go to
bench/results/preview.json and preview.md.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import httpx2
import pages
from pages import machine, opening, publish, table

from tidings.app.demo.movies import catalogue, publications
from tidings.app.serve.demo import PEOPLE
from tidings.engine.engine import Engine
from tidings.formats.arrow import read_valid_events
from tidings.formats.json_forms import loads_policy
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.service.server import WebServer
from tidings.store import EngineStep, Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.publications import NewPublication

BAR_MS = 300
LISTED = 20
"""As many as the page lists."""
MORE = 200
"""Films that are published later, one at a time."""
POLICIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "k of a sliding window": lambda move: {
        "k": 1 + move,
        "window": {"name": "sliding", "length": 100},
    },
    "variety": lambda move: {
        "k": 5,
        "window": {"name": "sliding", "length": 100},
        "diversify": {"name": "divrank", "sigma": 1 / (1 + move)},
    },
    "a digest with rules": lambda move: {
        "k": 5 + move,
        "window": {"name": "periodic", "length": "6h"},
        "decay": {"name": "exponential", "half_life": "6h"},
        "rules": [{"name": "quota", "n": 10 + move}, {"name": "quiet"}],
    },
}


def main() -> None:
    options = arguments()
    result: dict[str, Any] = {
        "machine": machine(),
        "publications": options.publications,
        "moves": options.moves,
    }
    rows = read_valid_events(publications(catalogue(), options.publications + MORE))
    films = [row for row in rows if isinstance(row, Event)]
    result["rows"] = [measured(name, films, options) for name in POLICIES]
    publish("preview", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "300 publications, 4 moves")
    parser.add_argument("--publications", type=int, default=5_000)
    parser.add_argument("--moves", type=int, default=30)
    options = parser.parse_args()
    if options.quick:
        options.publications, options.moves = min(options.publications, 300), min(options.moves, 4)
    return options


def measured(name: str, films: list[Event], options: argparse.Namespace) -> dict[str, Any]:
    policy = POLICIES[name]
    with served(films[: options.publications]) as (store, client):
        ask(client, policy(0))  # kernels are loaded
        kept = [ask(client, policy(move)) for move in range(1, options.moves // 2 + 1)]
        anew = list[dict[str, Any]]()
        for move, film in enumerate(films[options.publications :][: options.moves // 2], start=1):
            take(store, [film])
            anew.append(ask(client, policy(move)))
        taken = films[: options.publications + len(anew)]
        cpu_ms, right = replayed(taken, policy(len(anew)), anew[-1]["answer"])
    return {
        "case": name,
        **{
            f"{key}_{part}": value
            for part, moves in (("kept", kept), ("anew", anew))
            for key, value in summary(moves).items()
        },
        "engine_cpu_ms": cpu_ms,
        "cpu_ratio": cpu_ms / summary(anew)["cpu_ms"],
        "right": right,
    }


@contextmanager
def served(films: list[Event]) -> Iterator[tuple[Store, httpx2.Client]]:
    """Serve a store whose films count as taken; no pipeline disturbs the measurement."""
    with TemporaryDirectory() as folder:
        address = str(Path(folder, "preview.db"))
        with open_store(address) as store:
            store.catalogue.load(PEOPLE[0].records())
            take(store, films)
            server = WebServer(address, port=0)
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            base = f"http://127.0.0.1:{server.port}"
            with httpx2.Client(base_url=base, timeout=600) as client:
                yield store, client
            server.stop()
            thread.join()


def take(store: Store, films: list[Event]) -> None:
    """Publish films, and write the step of a pipeline that has taken them."""
    store.publications.accept([NewPublication(film) for film in films], 0)
    last = store.log.last()
    step = EngineStep(last.number + 1, None, store.catalogue.version(), store.publications.last())
    store.log.append(step, BatchAppend.of("bench", step.number, (), late=(), dead=()))


def ask(client: httpx2.Client, policy: dict[str, Any]) -> dict[str, Any]:
    """Return an answer, with its time."""
    name = PEOPLE[0].name
    question = {"subscriber": name, "policy": policy, "compare": True, "limit": LISTED}
    began, cpu = time.perf_counter(), time.process_time()
    answer = client.post("/v1/preview", json=question).raise_for_status()
    ms = 1e3 * (time.perf_counter() - began)
    return {"ms": ms, "cpu_ms": 1e3 * (time.process_time() - cpu), "answer": answer.json()}


def summary(moves: list[dict[str, Any]]) -> dict[str, float]:
    times = [move["ms"] for move in moves]
    return {
        "ms": median(times),
        "p95_ms": quantiles(times, n=20)[-1],
        "cpu_ms": median(move["cpu_ms"] for move in moves),
    }


def replayed(
    films: list[Event], policy: dict[str, Any], answer: dict[str, Any]
) -> tuple[float, bool]:
    """Return the CPU time of two engines, and whether they deliver what the preview says."""
    person = PEOPLE[0]
    began, delivered = time.process_time(), list[list[str]]()
    for each in (loads_policy(policy), person.policy):
        engine = Engine(remember=0)
        engine.subscribe(Subscriber(person.name, each))
        engine.add_many([record for record in person.records() if isinstance(record, Subscription)])
        delivered.append([delivery.event for delivery in engine.publish_many(films)])
    cpu_ms = 1e3 * (time.process_time() - began)
    comparison = answer["comparison"]
    counts = [comparison[side]["delivered"] for side in ("tried", "saved")]
    ids = [item["event"] for item in answer["items"]]
    return cpu_ms, counts == list(map(len, delivered)) and ids == delivered[0][-LISTED:]


def page(result: dict[str, Any]) -> str:
    remark = (
        f"{result['publications']:,} recent publications, {result['moves']} moves of a slider; the "
        f"bar is {BAR_MS} ms. `kept`: the matches of the move before are used; `anew`: another "
        "publication has come. `engines` is two engines that get everything again."
    )
    head = (
        *("slider", "ms kept", "p95", "ms anew", "p95", f"p95 < {BAR_MS} ms"),
        *("CPU ms kept", "CPU ms anew", "engines, CPU ms", "ratio"),
    )
    rows = [
        (
            row["case"],
            *(f"{row[name]:,.0f}" for name in ("ms_kept", "p95_ms_kept", "ms_anew", "p95_ms_anew")),
            "met" if max(row["p95_ms_kept"], row["p95_ms_anew"]) < BAR_MS else "**not met**",
            *(f"{row[name]:,.0f}" for name in ("cpu_ms_kept", "cpu_ms_anew")),
            f"{row['engine_cpu_ms']:,.0f}",
            f"{row['cpu_ratio']:.1f}",
        )
        for row in result["rows"]
    ]
    return "\n".join([*opening("A slider on the page", result, remark), *table(head, rows)])


if __name__ == "__main__":
    main()
