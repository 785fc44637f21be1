"""The service under load, from a second process: publishing, feeds, and live delivery.

python bench/service.py [--engine local] [--live 1000] [--seconds 10] [--quick]

`tidings serve` runs over an SQLite store, with one of the engines. This process publishes in bulk
and one by one, waits until the pipeline has delivered all of it, asks for feeds at 100 requests a
second, next to a path that does nothing, and follows live streams. Publications are written to
plain connections, so that little but the service is measured. Each figure stands beside its bar,
and beside the processor time of all processes of the service, which a busy machine changes little.
Results go to bench/results/service.json and service.md.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import httpx2

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import Result, machine, opening, publish, table

PEOPLE, BULK, AT_ONCE, RATE = 200, 1_000, 16, 100
TOPICS, UNLIMITED = 500, 1_000_000
LIVE_BAR_MS = {"local": 50, "spark": 1_500}
Call = Callable[[int], Awaitable[Any]]


def main() -> None:
    options = arguments()
    result: Result = {"machine": machine(), "engine": options.engine, "live": options.live}
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), options.engine) as service:
        result |= asyncio.run(measure(service, options))
    result |= costs(result)
    publish("service" if options.engine == "local" else "service-spark", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "20 live streams, half a second")
    parser.add_argument("--engine", choices=["local", "spark"], default="local")
    parser.add_argument("--live", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    options.live = options.live or (20 if options.quick else 1_000)
    options.seconds = options.seconds or (0.5 if options.quick else 10.0)
    return options


class Service(NamedTuple):
    """A service that runs: its address, and the process that has started all its others."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """Return the processor time of all its processes so far."""
        parents, spent = dict[int, int](), dict[int, float]()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                fields = stat.read_text().rpartition(")")[2].split()
                pid = int(stat.parent.name)
                parents[pid] = int(fields[1])
                spent[pid] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        return sum(spent[pid] for pid in spent if self._owns(pid, parents))

    def _owns(self, pid: int, parents: dict[int, int]) -> bool:
        while pid not in (self.pid, 0):
            pid = parents.get(pid, 0)
        return pid == self.pid


@contextmanager
def served(folder: Path, engine: str) -> Iterator[Service]:
    """Run the service, with no limit of requests that this process could reach."""
    config = folder / "service.toml"
    config.write_text(f"[service]\nstore = 'sqlite:///t.db'\nrate = {UNLIMITED}\n")
    options = ["--engine", engine, "--port", "0", "--json"]
    command = [sys.executable, "-m", "tidings.app.cli", "serve", str(config), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            yield Service(json.loads(running.stdout.readline())["url"], running.pid)
        finally:
            running.terminate()


async def measure(service: Service, options: argparse.Namespace) -> Result:
    limits = httpx2.Limits(max_connections=options.live + 100)
    async with httpx2.AsyncClient(base_url=service.url, limits=limits, timeout=120) as client:
        await subscribe(client, max(PEOPLE, options.live))
        single, bulk = Events("single"), Events("bulk")
        return {
            "singles": await single.publish(client, service, options.seconds, 1),
            "bulk": await bulk.publish(client, service, options.seconds, BULK),
            **await feeds(client, service, options.seconds),
            **await live(client, options.live, 5 if options.quick else 50),
        }


def costs(result: Result) -> Result:
    """Return what requests cost by an empty path, for the history; machines differ less in these.

    Of publishing it is the time of one request, of 16 that are under way.
    """
    empty_ms = result["empty_ms"]["p50"]
    single_ms = 1_000 * AT_ONCE / result["singles"]["accepted_per_s"]
    bulk_ms = 1_000 * BULK / result["bulk"]["delivered_per_s"]
    return {
        "single_ratio": single_ms / empty_ms,
        "bulk_delivered_ratio": bulk_ms / empty_ms,
        "feed_ratio": result["feed_ms"]["p50"] / empty_ms,
        "live_ratio": result["live_ms"]["p50"] / empty_ms,
    }


async def subscribe(client: httpx2.AsyncClient, count: int) -> None:
    """Give each person one of many topics, and a number of their own."""
    policy = {"k": 3, "window": {"name": "sliding", "length": 20}}
    forms: list[dict[str, Any]] = [{"id": f"u{n}", "policy": policy} for n in range(count)]
    for n in range(count):
        where = f"topic = 'topic {n % TOPICS}' and year >= 1995"
        forms.append({"id": f"s{n}", "subscriber": f"u{n}", "where": where})
        forms.append({"id": f"l{n}", "subscriber": f"u{n}", "where": f"live = {n}"})
    (await client.post("/v1/subscriptions:import?wait=applied", json=forms)).raise_for_status()


class Events:
    """Events with ever new ids."""

    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0

    def take(self, count: int) -> list[dict[str, Any]]:
        first, self._count = self._count, self._count + count
        return [
            {
                "id": f"{self._name}-{n}",
                "attributes": {"topic": f"topic {n % TOPICS}", "year": 1990 + n % 19},
            }
            for n in range(first, first + count)
        ]

    async def publish(
        self, client: httpx2.AsyncClient, service: Service, seconds: float, size: int
    ) -> Result:
        """Publish from several tasks for some time, and wait until all of it is delivered.

        Return the events per second that were accepted, and that were delivered, and the processor
        time of the service for one of them, from the request to the delivery.
        """
        began, cpu_s = time.perf_counter(), service.cpu_s()

        async def work() -> int:
            sent = 0
            async with publisher(service.url) as post:
                while time.perf_counter() - began < seconds:
                    events = self.take(size)
                    sent += (await post(events if size > 1 else events[0]))["accepted"]
            return sent

        tasks = AT_ONCE if size == 1 else 2
        sent = sum(await asyncio.gather(*(work() for _ in range(tasks))))
        accepted_s = time.perf_counter() - began
        await drained(client, f"{self._name}-last")
        delivered_s = time.perf_counter() - began
        return {
            "accepted_per_s": sent / accepted_s,
            "delivered_per_s": sent / delivered_s,
            "cpu_ms": 1_000 * (service.cpu_s() - cpu_s) / sent,
        }


@asynccontextmanager
async def publisher(url: str) -> AsyncIterator[Callable[[Any], Awaitable[Any]]]:
    """Yield a function that publishes over a connection of its own.

    It writes HTTP itself: on two cores, what a client library needs for a request is taken from
    the service.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def post(form: Any) -> Any:
        body = json.dumps(form).encode()
        head = f"POST /v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines if line)
        answer = await reader.readexactly(int(headers["content-length"]))
        if " 202 " not in status:
            raise RuntimeError(f"{status}: {answer.decode()}")
        return json.loads(answer)

    try:
        yield post
    finally:
        writer.close()


async def drained(client: httpx2.AsyncClient, mark: str) -> None:
    """Wait until the pipeline has taken everything: a publication that no one wants, too."""
    event, taken = {"id": mark, "attributes": {}}, None
    while taken is None:
        answer = await client.post("/v1/events?wait=delivered", json=event)
        taken = answer.raise_for_status().json()["deliveries"]


async def feeds(client: httpx2.AsyncClient, service: Service, seconds: float) -> Result:
    """Ask for feeds, and for a path that does nothing, at the same rate; return milliseconds."""
    spent = [service.cpu_s()]
    empty = await at_rate(lambda _: client.get("/v1/nothing"), seconds)
    spent.append(service.cpu_s())
    full = await at_rate(lambda n: client.get(f"/v1/feeds/u{n % PEOPLE}"), seconds)
    spent.append(service.cpu_s())
    return {
        "feed_ms": percentiles(full) | {"cpu": 1_000 * (spent[2] - spent[1]) / len(full)},
        "empty_ms": percentiles(empty) | {"cpu": 1_000 * (spent[1] - spent[0]) / len(empty)},
    }


async def at_rate(call: Call, seconds: float) -> list[float]:
    """Make calls at a steady rate, whether answers come or not; return their times."""

    async def timed(number: int) -> float:
        began = time.perf_counter()
        await call(number)
        return time.perf_counter() - began

    began, tasks = time.perf_counter(), []
    for number in range(int(seconds * RATE)):
        await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
        tasks.append(asyncio.create_task(timed(number)))
    return list(await asyncio.gather(*tasks))


def percentiles(times: list[float]) -> dict[str, float]:
    cuts = quantiles(times, n=100)
    return {"p50": 1_000 * median(times), "p99": 1_000 * cuts[98]}


async def live(client: httpx2.AsyncClient, count: int, rounds: int) -> Result:
    """Follow many streams; return how long a publication takes to one of them, and to all."""
    arrivals: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    opened = asyncio.Semaphore(0)

    async def follow(number: int) -> None:
        path = f"/v1/notifications/u{number}"
        inbox = (await client.get(path, params={"limit": 1})).json()["inbox"]
        async with client.stream("GET", f"{path}/stream?after={inbox['last']}") as stream:
            opened.release()
            async for line in stream.aiter_lines():
                if line.startswith("data:") and '"live-' in line:
                    await arrivals.put((line, time.perf_counter()))

    tasks = [asyncio.create_task(follow(number)) for number in range(count)]
    for _ in range(count):
        await opened.acquire()
    times, to_all = [], []
    for number in range(rounds):
        began = time.perf_counter()
        event = {"id": f"live-{number}", "attributes": {"live": number % count}}
        await client.post("/v1/events", json=event)
        times.append((await arrivals.get())[1] - began)
    everyone = {"id": "live-all", "attributes": {"live": list(range(count))}}
    began = time.perf_counter()
    await client.post("/v1/events", json=everyone)
    for _ in range(count):
        to_all.append((await arrivals.get())[1] - began)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"live_ms": percentiles(times), "all_ms": 1_000 * max(to_all), "received": len(to_all)}


def page(result: Result) -> str:
    engine = result["engine"]
    remark = (
        f"`tidings serve --engine {engine}` over an SQLite store, and this process beside it, on "
        "the same cores. Each event has one of 500 topics, which two of 1,000 subscribers want. An "
        "empty path is one that the service does not have."
    )
    feed, empty, alone = result["feed_ms"], result["empty_ms"], result["live_ms"]
    single, bulk = result["singles"], result["bulk"]
    rows = [
        row("publish, 1,000 a request", bulk["accepted_per_s"], "/s", bulk["cpu_ms"], least=2_000),
        row("until all of these are delivered", bulk["delivered_per_s"], "/s"),
        row(
            f"publish, one a request, {AT_ONCE} at once",
            single["accepted_per_s"],
            "/s",
            single["cpu_ms"],
            least=300,
        ),
        row("until all of these are delivered", single["delivered_per_s"], "/s"),
        row("feed at 100 requests/s, p99", feed["p99"], "ms", feed["cpu"], most=25),
        row("the same of an empty path", empty["p99"], "ms", empty["cpu"]),
        row("ratio of the medians", result["feed_ratio"], ""),
        row("live streams that received all", result["received"], "", least=result["live"]),
        row("publication to a live stream, median", alone["p50"], "ms", most=LIVE_BAR_MS[engine]),
        row(f"to the last of {result['live']:,} streams", result["all_ms"], "ms"),
    ]
    head = ("", "measured", "bar", "", "CPU ms of the service, each")
    return "\n".join([*opening("Service", result, remark), *table(head, rows)])


def row(
    name: str,
    value: float,
    unit: str,
    cpu_ms: float | None = None,
    *,
    least: float | None = None,
    most: float | None = None,
) -> tuple[str, ...]:
    """Return a line of the page: a figure, its bar, and whether it is met."""
    digits = 0 if value >= 1_000 or unit == "/s" or value == int(value) else 1
    bar, verdict = least if least is not None else most, ""
    if bar is not None:
        is_met = value >= bar if least is not None else value < bar
        verdict = "met" if is_met else "**not met**"
    sign = "" if bar is None else f"{'≥' if least is not None else '<'} {bar:,} {unit}".rstrip()
    cost = "" if cpu_ms is None else f"{cpu_ms:.2f}"
    return (name, f"{value:,.{digits}f} {unit}".rstrip(), sign, verdict, cost)


if __name__ == "__main__":
    main()
