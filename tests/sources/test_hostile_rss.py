"""Feeds of strangers: whatever one holds or does, it is read or refused, and soon."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from threading import Event, Thread

import pytest
from tests.damage import run_cases
from tests.fuzz import cases
from tests.mutation import mutated
from tests.service.running import PATIENCE_S

from tidings.errors import SourceError
from tidings.sources.rss import plain_text, read_feed
from tidings.sources.rss_fetch import fetch
from tidings.sources.spooled import _batch
from tidings.store.spool import NumberedMessage

NOW = 1_800_000_000.0
RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
<item><title>Film &amp; &lt;b&gt;more&lt;/b&gt;</title><link>http://news/1</link><guid>1</guid>
<description><![CDATA[<p>On <i>film</i> 1</p>]]></description><category>drama</category>
<pubDate>Mon, 16 Nov 2026 10:01:00 GMT</pubDate></item>{}</channel></rss>"""
ATOM = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>
<entry><id>tag:news,2026:1</id><title type="html">&lt;b&gt;B</title><link href="/2"/>
<updated>2026-11-16T10:00:00Z</updated><author><name>Ann</name></author></entry></feed>"""
BOMB = """<?xml version="1.0" encoding="{}"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><rss version="2.0"><channel><title>&b;</title>
<item><title>&b;</title></item></channel></rss>"""
SCRAPS = [
    b"<![foo[x]]>",
    b"&#x110000;",
    b"&#99999999999999;",
    b"<!--",
    b"&lt;![x[",
    b"\xff",
    b"]]>",
]
SCRAPS += [b"<item>" * 50, b"<title>" * 50, b"<?xml", b"xml:base='::'", b"<pubDate>99</pubDate>"]


def document(rng: Random) -> None:
    body = rng.choice([RSS.format("").encode(), ATOM])
    if rng.random() < 0.5:
        at = rng.randrange(len(body))
        body = body[:at] + rng.choice(SCRAPS) + body[at:]
    if rng.random() < 0.7:
        body = mutated(rng, body)
    for entry in read_feed(body, "http://news/feed", NOW, rng.choice(["seen", "published"])):
        [row] = _batch("rss", [NumberedMessage(1, entry.message)]).to_pylist()
        assert json.loads(row["value"])["id"]


@pytest.mark.fuzz
def test_any_document_is_read_or_refused() -> None:
    run_cases("document", document, cases(200))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32", "cp037", "utf-7"])
def test_entities_are_refused_in_every_encoding(encoding: str) -> None:
    body = BOMB.format(encoding).encode("ascii" if encoding == "utf-7" else encoding)
    if encoding == "utf-7":
        body = body.replace(b"<!ENTITY", b"+ADwAIQ-ENTITY")
    with pytest.raises(SourceError, match="it declares entities"):
        list(read_feed(body, "http://news/feed", NOW))


@pytest.mark.parametrize(
    "scrap",
    ["<!--", "<a ", "<a/", "<a b='", '<a b="', "<![CDATA[", "<![x[", "&#", "<script>", "<", "</a"],
)
def test_markup_is_read_in_linear_time(scrap: str) -> None:
    """Five megabytes of one item: 5 seconds of processor time would fail."""
    text = scrap * (5_000_000 // len(scrap))
    run_cases("long", lambda _: [plain_text(text), plain_text("x" + text)].clear(), 1)


@pytest.mark.parametrize(
    "scrap", ["<b>", "&lt;a ", "<![CDATA[<a ]]>", "<item>", "&lt;!--", "&amp;"]
)
def test_a_long_document_is_read_soon(scrap: str) -> None:
    for place in ("<item><title>{}</title></item>", "<item><description>{}</description></item>"):
        body = RSS.format(place.format(scrap * (1_000_000 // len(scrap)))).encode()
        run_cases(f"long {place}", partial(_read_whole, body), 1)


def _read_whole(body: bytes, _: Random) -> None:
    for entry in read_feed(body, "http://news/feed", NOW):
        assert len(entry.message) < 1_000_000


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Two <b>films</b>  &amp; a play</p>", "Two films & a play"),
        ('<a title="1 > 0">x</a> 1 < 2 <!-- no --> y<br/>z', "x 1 < 2 yz"),
        ("<script>alert(1)</script>a<![foo[x]]>", "a"),
        ("&#99999999999;&#x41;&lt;b&gt;", "\ufffdA<b>"),
        ("a < b & c", "a < b & c"),
    ],
)
def test_the_text_of_html(html: str, text: str) -> None:
    assert plain_text(html) == text


def test_the_title_of_a_feed_is_not_repeated_at_length() -> None:
    body = RSS.replace("News", "N" * 100_000).format("").encode()
    (entry,) = read_feed(body, "http://news/feed", NOW)
    assert len(entry.message) < 2_000


@contextmanager
def drip(*pieces: bytes) -> Iterator[str]:
    """Serve some pieces of an answer, then one byte after the other until the client hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        hung_up = Event()

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.settimeout(0.01)
                for piece in [*pieces, *[b"x"] * 10_000]:
                    try:
                        client.sendall(piece)
                        if client.recv(1_000) == b"":
                            hung_up.set()
                            return
                    except TimeoutError:
                        continue
                    except OSError:
                        hung_up.set()
                        return

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert hung_up.wait(PATIENCE_S)
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nX: "],
    ],
)
def test_an_answer_in_single_bytes_ends(pieces: list[bytes]) -> None:
    with drip(*pieces) as url, pytest.raises(SourceError, match=r"ended early|no answer"):
        fetch(url, {}, 1_000_000, 0.3)
