"""Feeds of a small HTTP server, polled with a clock that the tests set."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.sources.feed_servers import Answer, FeedServer
from tests.sources.kills import kill_runs, start
from tests.sources.pipelines import run_here, write_config

from tidings.errors import SourceError
from tidings.sources.rss import FeedCollector, open_reader, read_feed, read_options
from tidings.store import Spool, open_store

RSS = '<rss version="2.0"><channel><title>Film news</title>{}</channel></rss>'
ITEM = (
    "<item><guid isPermaLink='false'>{0}</guid><title>Film {0}</title><link>http://news/{0}</link>"
    "<description>&lt;p&gt;On &lt;b&gt;film&lt;/b&gt; {0}&lt;/p&gt;</description>"
    "<category>drama</category><pubDate>Mon, 16 Nov 2026 {1}:{2:02d}:00 GMT</pubDate></item>"
)
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><entry>
<id>tag:news,2026:1</id><title>One</title><link href="http://news/1"/>
<updated>2026-11-16T10:00:00Z</updated><author><name>Ann</name></author></entry></feed>"""
NOW = 1_800_000_000.0


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer().running() as server:
        yield server


def rss(*numbers: int) -> bytes:
    items = (ITEM.format(number, 10 + number // 60, number % 60) for number in numbers)
    return RSS.format("".join(items)).encode()


def events(body: bytes, times: str = "seen") -> list[Any]:
    entries = read_feed(body, "http://news/feed", NOW, times)
    return [json.loads(json.loads(entry.message)["value"]) for entry in entries]


def test_entries_become_events_oldest_first() -> None:
    first, second = events(rss(2, 1), "published")
    assert first == {
        "id": "http://news/feed#1",
        "published_at": "2026-11-16T10:01:00+00:00",
        "attributes": {
            "title": "Film 1",
            "link": "http://news/1",
            "feed": "Film news",
            "category": ["drama"],
        },
        "content": {
            "title": "Film 1",
            "link": "http://news/1",
            "summary": "On film 1",
            "published": "2026-11-16T10:01:00+00:00",
        },
    }
    assert second["attributes"]["title"] == "Film 2"
    (entry,) = events(ATOM)
    assert (entry["id"], entry["attributes"]["author"]) == ("tag:news,2026:1", "Ann")
    assert entry["published_at"] == "2027-01-15T08:00:00+00:00"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>no feed</html>", "it is neither RSS nor Atom"),
        (b"", "it is neither RSS nor Atom"),
        (b'<!DOCTYPE x [<!ENTITY a "A">]>' + rss(1), "it declares entities"),
        (b"\x00\xff\xfe" * 50, "it is neither RSS nor Atom"),
    ],
)
def test_hostile_documents_are_refused(body: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        list(read_feed(body, "http://news/feed", NOW))


def test_an_entry_without_id_or_date_is_known_by_its_text() -> None:
    body = RSS.format("<item><title>A</title></item><item><title>B</title></item>").encode()
    first, second = events(body)
    assert first["id"] != second["id"]
    assert first["published_at"] == "2027-01-15T08:00:00+00:00"


@pytest.mark.parametrize("guid", ["<guid isPermaLink='false'>7</guid>", ""])
def test_the_query_of_a_feed_may_be_secret_and_is_in_no_event(guid: str) -> None:
    body = f"<rss version='2.0'><channel><item>{guid}<title>A</title></item></channel></rss>"

    def event(url: str) -> Any:
        (entry,) = read_feed(body.encode(), url, NOW)
        return json.loads(json.loads(entry.message)["value"])

    first, second = (event(f"https://news/feed?token=Sw0rd{n}") for n in range(2))
    assert "Sw0rd" not in json.dumps(first)
    assert first["attributes"]["feed"] == "https://news/feed"
    assert first["id"] != second["id"]
    assert event("https://news/feed")["id"].startswith("https://news/feed#")


class Polled:
    """A collector with a clock that the test sets."""

    def __init__(self, folder: Path, *urls: str, **more: str) -> None:
        self.spool = Spool.open(folder / "spool.db", "rss")
        given = {"urls": ",".join(urls), "spool": "unused", "minInterval": "10m", **more}
        self.now_s = NOW
        self.collector = FeedCollector(read_options(given), self.spool, lambda: self.now_s)

    def poll(self) -> int:
        """Collect; return how many entries are new."""
        before = self.spool.bounds().next
        self.collector.collect()
        return self.spool.bounds().next - before


def test_a_feed_is_asked_politely(server: FeedServer, tmp_path: Path) -> None:
    url = server.set("/feed", Answer(rss(1, 2), 200, {"ETag": '"7"', "Last-Modified": "today"}))
    polled = Polled(tmp_path, url)
    assert (polled.poll(), polled.poll(), len(server.asked)) == (2, 0, 1)
    polled.now_s += 601
    server.set("/feed", Answer(status=304))
    assert polled.poll() == 0
    assert server.asked[1]["if-none-match"] == '"7"'
    assert server.asked[1]["if-modified-since"] == "today"
    polled.now_s += 601
    server.set("/feed", Answer(rss(2, 3)))
    assert polled.poll() == 1
    polled.spool.close()


@pytest.mark.parametrize(
    "state", ["{", "[]", "7", "[" * 100_000, {"next_s": "x"}, {"etag": 7}, {"modified": {}}]
)
def test_a_feed_with_a_damaged_state_is_polled_again(
    server: FeedServer, tmp_path: Path, state: Any
) -> None:
    url = server.set("/feed", Answer(rss(1)))
    polled = Polled(tmp_path, url)
    polled.spool.append((), 0, state if isinstance(state, str) else json.dumps({url: state}))
    assert (polled.poll(), polled.poll(), len(server.asked)) == (1, 0, 1)
    polled.spool.close()


def test_a_feed_that_fails_delays_only_itself(
    server: FeedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    busy = server.set("/busy", Answer(status=503, headers={"Retry-After": "3600"}))
    good = server.set("/good", Answer(rss(1)))
    away = "http://127.0.0.1:1/feed"
    polled = Polled(tmp_path, busy, away, good)
    assert polled.poll() == 1
    assert "/busy answers 503; it is polled again in 3600 s" in caplog.text
    assert "Connection refused; it is polled again later" in caplog.text
    polled.now_s += 601
    server.set("/busy", Answer(rss(4, 5)))
    assert (polled.poll(), len(server.asked)) == (0, 3)
    polled.now_s += 3600
    assert polled.poll() == 2
    polled.spool.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "option 'urls' is missing"),
        ({"urls": "http://a/"}, "option 'spool' is missing, such as spool = 'sqlite:///spool.db'"),
        ({"urls": "gopher://a/", "spool": "x"}, "a feed is at http://"),
        ({"urls": "http://a/", "spool": "x", "minInterval": "0.1s"}, "minInterval is at least 1 s"),
        ({"urls": "http://a/", "spool": "x", "times": "now"}, "unknown times 'now'"),
        ({"urls": "http://a/", "spool": "x", "every": "1s"}, "unknown option 'every'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceError) as error:
        open_reader(options, None)
    assert reason in str(error.value)


def config(folder: Path, url: str, **more: Any) -> Path:
    write_stream(folder, files=4)
    subscription = {"id": "s", "subscriber": "ann", "where": "category = 'drama'"}
    (folder / "subscriptions.jsonl").write_text(json.dumps(subscription) + "\n")
    (folder / "subscribers.jsonl").write_text(
        json.dumps({"id": "ann", "policy": {"k": 1_000}}) + "\n"
    )
    options = {"urls": url, "spool": "sqlite:///spool.db", "times": "published", **more}
    return write_config(folder, "rss", {**options, "minInterval": "1s"})


def delivered(folder: Path) -> list[str]:
    with open_store(folder / "news.db") as store:
        return [notification.event for notification in store.notifications.after("ann", limit=1000)]


def test_entries_are_delivered_once_with_their_title(server: FeedServer, tmp_path: Path) -> None:
    url = server.set("/feed", Answer(rss(*range(10))))
    path = config(tmp_path, url)
    path.write_text(path.read_text().replace('lateness = "120s"', 'lateness = "0s"'))
    assert run_here(path).events == 10
    assert run_here(path).events == 0
    with open_store(tmp_path / "news.db") as store:
        newest = store.notifications.newest("ann", limit=1)[0]
    assert newest.content is not None
    assert newest.content["title"] == "Film 9"
    assert len(delivered(tmp_path)) == 10


@pytest.mark.kill
def test_kills_lose_nothing_and_repeat_nothing(server: FeedServer, tmp_path: Path) -> None:
    """The feed shows its entries only once, so what is not spooled would be lost."""
    url = server.set("/feed", Answer(rss(*range(50))))
    path = config(tmp_path, url, maxRecordsPerTrigger=1 if KILLS else 5)
    path.write_text(path.read_text().replace('lateness = "120s"', 'lateness = "0s"'))
    assert len(kill_runs(path, kills=1)) == 1
    server.set("/feed", Answer(rss()))
    kills = 19 if KILLS else 1
    assert len(kill_runs(path, kills)) == kills
    run = start(path)
    assert run.wait() == 0, run.output()
    assert sorted(delivered(tmp_path)) == sorted(f"{url}#{number}" for number in range(50))
