"""`tidings-rss`: entries of RSS and Atom feeds, polled at intervals.

A feed is requested at most once per interval, with its ETag and date, and later if it asks for that
(`Retry-After`). It shows only its newest entries, so new ones go to a spool first. This is the only
import of feedparser.
"""

import calendar
import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any, Final
from urllib.parse import urlsplit

import feedparser
from feedparser.encodings import convert_to_utf8

from tidings.errors import SourceError, described
from tidings.formats.event_source import RSS
from tidings.model.values import parse_duration_us
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_integer,
    read_required,
)
from tidings.sources.rss_fetch import Fetched, fetch, read_url
from tidings.sources.spooled import SpooledReader, message_text
from tidings.store import Spool, SpoolEntry

_LOG: Final = logging.getLogger(__name__)
_KNOWN: Final = (
    *("urls", "spool", "name", "minInterval", "times", "userAgent"),
    *("maxRecordsPerTrigger", "maxBytes", "timeoutMs"),
)
_TIMES: Final = ("seen", "published")
_AGENT: Final = "tidings (feed reader)"
_INTERVAL: Final = "15m"
_SHORTEST_S: Final = 1
_LONGEST_S: Final = 86_400
_MAX_BYTES: Final = 5_000_000
_TIMEOUT_MS: Final = 20_000
_SUMMARY: Final = 2_000
_TITLE: Final = 500
_MARKUP: Final = 20_000
"""The characters of a text with markup that are read."""
# Each alternative ends before the next `<`, so that the time is linear whatever a feed holds.
_TAG: Final = re.compile(
    r"""<!--(?:(?!<!--).)*?-->|<(?:script|style)\b[^<>]*>[^<]*"""
    r"""|<[\w/!?](?:[^<>"']|"[^"<]*"|'[^'<]*')*>""",
    re.DOTALL | re.IGNORECASE,
)
_CDATA: Final = re.compile(rb"<!\[CDATA\[(?:(?!<!\[CDATA\[).)*?\]\]>", re.DOTALL)
_MOST_TAGS: Final = 50_000
"""A thousand entries have about half as many; each takes the parser some 50 microseconds."""
_LONG_NUMBER: Final = re.compile(r"&#[xX]?[0-9a-fA-F]{9,};?")
"""No character has such a number, and `unescape` raises an error at thousands of digits."""
_ENTRIES: Final = 1_000
_REMEMBERED_S: Final = 90 * 86_400
"""How long an entry is remembered after its feed no longer shows it."""
_GLOBAL: Final = ("http://", "https://", "tag:", "urn:")
Form = dict[str, Any]


@dataclass(frozen=True)
class FeedOptions:
    """The feeds, how often they are polled, and how much they may send."""

    urls: tuple[str, ...]
    spool: str
    name: str = "rss"
    interval_s: float = 900.0
    times: str = _TIMES[0]
    agent: str = _AGENT
    limit: int | None = None
    max_bytes: int = _MAX_BYTES
    timeout_s: float = _TIMEOUT_MS / 1000


def open_reader(texts: OptionTexts, _: bool | None) -> SpooledReader:
    """Return the reader of feeds."""
    options = read_options(texts)
    return SpooledReader(
        RSS,
        options.spool,
        options.name,
        lambda spool: FeedCollector(options, spool),
        options.limit,
    )


def read_options(texts: OptionTexts) -> FeedOptions:
    """Return the options."""
    check_names(RSS, texts, _KNOWN)
    small = lower_names(texts)
    listed = read_required(RSS, small, "urls", "urls = 'https://example.org/feed.xml'")
    urls = tuple(url.strip() for url in listed.split(",") if url.strip())
    for url in urls:
        read_url(url)
    times = small.get("times", _TIMES[0])
    if times not in _TIMES:
        raise SourceError(f"{RSS}: unknown times {times!r}; expected one of: {', '.join(_TIMES)}")
    interval_s = parse_duration_us(small.get("mininterval", _INTERVAL)) / 1e6
    if interval_s < _SHORTEST_S:
        raise SourceError(f"{RSS}: minInterval is at least {_SHORTEST_S} s, not {interval_s:g} s")
    return FeedOptions(
        urls,
        read_required(RSS, small, "spool", "spool = 'sqlite:///spool.db'"),
        small.get("name", "rss"),
        interval_s,
        times,
        small.get("useragent", _AGENT),
        read_integer(small, "maxRecordsPerTrigger"),
        read_integer(small, "maxBytes") or _MAX_BYTES,
        (read_integer(small, "timeoutMs") or _TIMEOUT_MS) / 1000,
    )


class FeedCollector:
    """Polls the feeds that are due; one that fails delays only itself."""

    def __init__(
        self, options: FeedOptions, spool: Spool, clock: Callable[[], float] = time.time
    ) -> None:
        self._options, self._spool, self._clock = options, spool, clock

    def collect(self) -> None:
        """Poll the feeds that are due, and store their new entries."""
        states = _read_states(self._spool.state())
        for url in self._options.urls:
            state, now_s = states.get(url, {}), self._clock()
            if now_s < state.get("next_s", 0):
                continue
            try:
                entries, state = self._poll(url, state, now_s)
            except Exception as error:  # noqa: BLE001 - a feed may cause anything
                reason = described(error)
                _LOG.warning("%s: %s: %s; it is polled again later", RSS, _shown(url), reason)
                entries, state = [], {**state, "next_s": now_s + self._options.interval_s}
            states[url] = state
            self._spool.append(entries, int(now_s), json.dumps(states))
        self._spool.forget_marks(int(self._clock()) - _REMEMBERED_S)

    def close(self) -> None:
        """Do nothing: there is no connection between polls."""

    def _poll(self, url: str, state: Form, now_s: float) -> tuple[list[SpoolEntry], Form]:
        """Return the entries of a feed, new or not, and its state after this."""
        options = self._options
        names = {"etag": "If-None-Match", "modified": "If-Modified-Since"}
        conditions = {header: state[name] for name, header in names.items() if state.get(name)}
        headers = {"User-Agent": options.agent, **conditions}
        answer = fetch(url, headers, options.max_bytes, options.timeout_s)
        wait_s = max(options.interval_s, min(_LONGEST_S, retry_after_s(answer, now_s)))
        if answer.status == 304:
            return [], {**state, "next_s": now_s + wait_s}
        if answer.status != 200:
            retry = f"it is polled again in {wait_s:g} s"
            _LOG.warning("%s: %s answers %d; %s", RSS, _shown(url), answer.status, retry)
            return [], {**state, "next_s": now_s + wait_s}
        entries = list(read_feed(answer.body, url, now_s, options.times))
        return entries, {
            "etag": answer.headers.get("etag"),
            "modified": answer.headers.get("last-modified"),
            "next_s": now_s + wait_s,
        }


def _read_states(text: str) -> dict[str, Form]:
    """Return the states of feeds by their URLs; a feed whose state is damaged is polled at once."""
    try:
        states = json.loads(text or "{}").items()
    except (AttributeError, RecursionError, ValueError):
        _LOG.warning("%s: the state in the spool is damaged; all feeds are polled again", RSS)
        return {}
    return {url: state for url, state in states if _is_state(state)}


def _is_state(state: Any) -> bool:
    texts = ("etag", "modified")
    return (
        isinstance(state, dict)
        and isinstance(state.get("next_s", 0), int | float)
        and all(isinstance(state.get(name), str | None) for name in texts)
    )


def retry_after_s(answer: Fetched, now_s: float) -> float:
    """Return how long a feed asks clients to wait, 0 if it does not.

    >>> retry_after_s(Fetched(503, {"retry-after": "120"}, b""), 0.0)
    120.0
    """
    text = answer.headers.get("retry-after", "")
    if text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def read_feed(body: bytes, url: str, now_s: float, times: str = _TIMES[0]) -> Iterator[SpoolEntry]:
    """Yield the entries of a feed, oldest first.

    Refuse documents that are not feeds or declare entities.
    """
    feed = _parsed(body, url)
    if not feed.get("version") and not feed.entries:
        raise SourceError("it is neither RSS nor Atom")
    now = datetime.fromtimestamp(now_s, UTC)
    listed = [(_time_s(entry), entry) for entry in reversed(feed.entries[:_ENTRIES])]
    listed.sort(key=lambda pair: now_s if pair[0] is None else pair[0])
    title = plain_text(str(feed.feed.get("title", "")))[:_TITLE] or _shown(url)
    for at_s, entry in listed:
        known_by = str(entry.get("id") or entry.get("link") or "") or _digest(entry)
        form = _event(entry, title, url, known_by)
        published = now if at_s is None else datetime.fromtimestamp(at_s, UTC)
        form["published_at"] = (published if times == "published" else now).isoformat()
        if at_s is not None:
            form["content"]["published"] = published.isoformat()
        text = message_text(url, json.dumps(form).encode(), now)
        yield SpoolEntry(_digest([url, known_by]), "", text, may_repeat=True)


def _parsed(body: bytes, url: str) -> Any:
    """Return what feedparser makes of a document.

    Markup is not cleaned here, which would take long: `plain_text` removes it from titles and
    summaries.
    """
    try:
        # In the encoding that the parser will use, which need not be a superset of ASCII.
        text = convert_to_utf8({}, body, {})
        if b"<!ENTITY" in text.upper():
            raise SourceError("it declares entities, which no feed needs")
        if _CDATA.sub(b"", text).count(b"<") > _MOST_TAGS:
            raise SourceError(f"it has more than {_MOST_TAGS:,} tags")
        return feedparser.parse(
            body,
            response_headers={"content-location": url},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 - a document may cause anything
        raise SourceError(f"it cannot be read: {type(error).__name__}") from None


def _event(entry: Any, feed: str, url: str, known_by: str) -> Form:
    link, title = str(entry.get("link", "")), plain_text(str(entry.get("title", "")))
    name = known_by if known_by.startswith(_GLOBAL) else f"{_named(url)}#{known_by}"
    tags = sorted({str(tag.get("term")) for tag in entry.get("tags", ()) if tag.get("term")})
    attributes = {
        "title": title,
        "link": link,
        "feed": feed,
        "author": str(entry.get("author", "")),
        "category": tags,
    }
    summary = plain_text(str(entry.get("summary", "")))[:_SUMMARY]
    content = {"title": title, "link": link, "summary": summary}
    return {
        # Stores have a limit for ids, and some feeds have whole texts there.
        "id": name if len(name.encode()) <= 500 else f"{name[:100]}#{_digest(name)}",
        "attributes": {key: value for key, value in attributes.items() if value},
        "content": {key: value for key, value in content.items() if value},
    }


def _shown(url: str) -> str:
    """Return a URL as logs show it: private feeds have a secret in their query."""
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _named(url: str) -> str:
    """Return a name for a feed; its query, which may be secret, is replaced by a digest."""
    parts = urlsplit(url)
    secret = (parts.query, parts.fragment)
    return f"{_shown(url)}?{_digest(secret)[:16]}" if any(secret) else url


def _time_s(entry: Any) -> int | None:
    # Not `entry.get`: feedparser would fall back to other fields, with a warning.
    parsed = dict.get(entry, "published_parsed") or dict.get(entry, "updated_parsed")
    try:
        seconds = None if parsed is None else calendar.timegm(parsed)
        return None if seconds is None or not 0 <= seconds < 2**32 else seconds
    except (TypeError, ValueError, OverflowError):
        return None


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode(errors="replace")).hexdigest()


def plain_text(html: str) -> str:
    """Return the text of HTML in one line.

    >>> plain_text("<p>Two <b>films</b>  &amp; a play</p>")
    'Two films & a play'
    """
    marked = _LONG_NUMBER.sub("\ufffd", _TAG.sub("", html[:_MARKUP]))
    return " ".join(unescape(marked).split()).encode(errors="replace").decode()
