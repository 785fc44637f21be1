"""Streams of a NATS server: every message once and in order, through deletions and kills."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from tests.channels.mailbox import make_certificate
from tests.channels.sending import channel_of, declared, deliver, send_all
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.proxy import proxy_to
from tests.sources.kills import check_kills
from tests.sources.nats_accounts import server_with_accounts
from tests.sources.nats_servers import NatsServer, running_nats
from tests.sources.pipelines import check, lines, run_here, write_config

from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.transport import Secret
from tidings.errors import SourceError
from tidings.formats.messages import MessageForm
from tidings.sources.jetstream import JetStreamReader, open_reader, read_options
from tidings.store import open_store


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    """Return the name of a new stream for each test."""
    return f"s{abs(hash(request.node.name))}"


def reader(server: NatsServer, stream: str, **more: str) -> JetStreamReader:
    return open_reader({"servers": server.address, "stream": stream, **more}, None)


def rows(reader: JetStreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    return [
        row
        for span in reader.spans(start, end)
        for batch in reader.read(span)
        for row in batch.to_pylist()
    ]


def values(reader: JetStreamReader, start: Any, end: Any) -> list[str]:
    return [row["value"].decode() for row in rows(reader, start, end)]


def test_batches_keep_to_the_limit_and_take_all(
    server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.sources.jetstream._PAGE", 3)
    server.send(stream, map(str, range(25)))
    open_one = reader(server, stream)
    position, seen = open_one.starting("latest"), list[str]()
    latest = open_one.latest()
    while (end := open_one.advance(position, latest, 7)) != position:
        some = values(open_one, position, end)
        assert len(some) <= 7
        seen, position = seen + some, end
    assert seen == [str(number) for number in range(25)]
    assert position == open_one.ending()


def test_a_stream_may_start_at_the_latest_or_at_a_number(server: NatsServer, stream: str) -> None:
    server.send(stream, "abc")
    late = reader(server, stream, startingSequence="latest")
    start = late.starting("latest")
    server.send(stream, "de")
    assert values(late, start, late.latest()) == ["d", "e"]
    third = reader(server, stream, startingSequence="3")
    assert values(third, third.starting("latest"), third.latest()) == ["c", "d", "e"]


def test_deleted_messages_and_other_subjects_are_skipped(server: NatsServer, stream: str) -> None:
    server.send(stream, "abcde")

    async def change(jetstream: Any) -> None:
        await jetstream.delete_msg(stream, 2)
        await jetstream.delete_msg(stream, 5)
        await jetstream.publish(f"{stream}.other", b"x")

    server.run(change)
    chosen = reader(server, stream, subject=f"{stream}.film")
    start = chosen.starting("latest")
    assert values(chosen, start, chosen.latest()) == ["a", "c", "d"]
    assert values(chosen, {stream: {"0": 5}}, chosen.latest()) == []


def test_headers_may_hold_the_envelope(server: NatsServer, stream: str) -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "shop", "ce-type": "sold"}
    server.send(stream, ['{"genre": "drama"}'], headers)
    open_one = reader(server, stream)
    (span,) = open_one.spans(open_one.starting("latest"), open_one.latest())
    (event,) = [one for batch in open_one.read(span) for one in MessageForm().events(batch)]
    assert event.id == "shop#7"  # type: ignore[union-attr]


def test_lost_messages_stop_the_stream_unless_allowed(server: NatsServer, stream: str) -> None:
    server.send(stream, "abcde")
    strict, lax = reader(server, stream), reader(server, stream, failOnDataLoss="false")
    start = strict.starting("latest")
    server.run(lambda jetstream: jetstream.purge_stream(stream, seq=4))
    with pytest.raises(SourceError, match="begins with message 4, after 1; records may be lost"):
        values(strict, start, strict.latest())
    assert values(lax, start, lax.latest()) == ["d", "e"]
    with pytest.raises(SourceError, match="was read up to offset 90 and now ends at 6"):
        strict.advance({stream: {"0": 90}}, strict.latest(), None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "option 'servers' is missing, such as servers = 'nats://localhost:4222'"),
        ({"servers": "nats://a:1"}, "option 'stream' is missing"),
        ({"servers": "http://a:1", "stream": "S"}, "servers must list addresses such as"),
        ({"servers": "nats://u:Sw0rdfish@a:1", "stream": "S"}, "servers must list addresses"),
        (
            {"servers": "nats://a:1", "stream": "S", "startingSequence": "x"},
            "startingSequence must",
        ),
        ({"servers": "nats://a:1", "stream": "S", "durable": "x"}, "unknown option 'durable'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceError) as error:
        read_options(options)
    assert reason in str(error.value)
    assert "Sw0rdfish" not in str(error.value)


def test_a_missing_stream_and_an_unreachable_server_are_named(server: NatsServer) -> None:
    with pytest.raises(SourceError, match="there is no stream 'nowhere'"):
        reader(server, "nowhere").starting("latest")
    options = {"servers": "nats://127.0.0.1:1", "stream": "S", "token": "Sw0rdfish"}
    away = open_reader({**options, "patienceMs": "1000"}, None)
    with pytest.raises(SourceError, match=r"nats://127.0.0.1:1: .*no connection") as error:
        away.latest()
    assert "Sw0rdfish" not in str(error.value) + repr(away._options)


def test_a_server_that_restarts_is_waited_for(server: NatsServer, stream: str) -> None:
    server.send(stream, ["a", "b"])
    with proxy_to(server.address) as proxy:
        options = {"servers": f"nats://127.0.0.1:{proxy.port}", "stream": stream}
        open_one = open_reader({**options, "patienceMs": "60000"}, None)
        start = open_one.starting("latest")
        proxy.down()
        back = Timer(2.5, proxy.up)
        back.start()
        end = open_one.advance(start, open_one.latest(), None)
        back.join()
        spans = open_one.spans(start, end)
        assert [len(batch) for span in spans for batch in open_one.read(span)] == [2]


def test_a_connection_that_breaks_within_a_range_is_replaced(
    server: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.sources.jetstream._PAGE", 3)
    names = [f"e{number}" for number in range(10)]
    server.send(stream, names)
    with proxy_to(server.address) as proxy:
        through = NatsServer(f"nats://127.0.0.1:{proxy.port}")
        patient = reader(through, stream, patienceMs="600000")
        [span] = patient.spans(patient.starting("latest"), patient.latest())
        found = list[str]()
        for batch in patient.read(span):
            found += [value.decode() for value in batch.column("value").to_pylist()]
            proxy.down()
            proxy.up()
    assert found == names


def test_a_wrong_password_is_refused_without_being_shown(tmp_path: Path) -> None:
    with running_nats(tmp_path, "--user", "ann", "--pass", "right") as guarded:
        options = {"servers": guarded.address, "stream": "S", "user": "ann"}
        wrong = open_reader({**options, "password": "Sw0rdfish", "patienceMs": "600000"}, None)
        with pytest.raises(SourceError, match=r"(?i)authorization") as error:
            wrong.latest()
        assert "Sw0rdfish" not in str(error.value)
        right = open_reader({**options, "password": "right"}, None)
        with pytest.raises(SourceError, match="there is no stream 'S'"):
            right.latest()


def test_tls_is_used_or_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = str(make_certificate(tmp_path))
    login, account = ("--user", "ann", "--pass", "right"), {"user": "ann", "password": "right"}
    (tmp_path / "plain").mkdir()
    with (
        running_nats(tmp_path, *login, "--tlscert", certificate, "--tlskey", certificate) as safe,
        running_nats(tmp_path / "plain", *login) as plain,
        open_store(tmp_path / "tidings.db") as store,
    ):
        safe_url, url = (re.sub(r"^\w+", "tls", each.address) for each in (safe, plain))
        options = {"stream": "S", **account, "patienceMs": "2000"}
        deliver(store, 0, "e0")

        def read(server: str, **more: str) -> str:
            with pytest.raises(SourceError) as caught:
                open_reader({**options, "servers": server, **more}, None).latest()
            return str(caught.value)

        def send(server: str) -> str:
            transport = JetStreamTransport((server,), "S.x", "ann", Secret(value="right"))
            send_all(store, declared("nats", transport), patience_s=0)
            store.channels.resume(channel_of(store).key)
            return str(channel_of(store).reason)

        assert "certificate" in read(safe_url)
        assert "certificate" in send(safe_url)
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        assert "there is no stream 'S'" in read(safe_url)
        assert "no stream listens" in send(safe_url)
        assert "does not use TLS" in read(url, patienceMs="600000")
        assert "does not use TLS" in send(url)


def test_a_file_of_credentials_opens_sources_and_channels(tmp_path: Path) -> None:
    with (
        server_with_accounts(tmp_path) as (guarded, credentials),
        open_store(tmp_path / "tidings.db") as store,
    ):
        options = {"servers": guarded.address, "stream": "S", "patienceMs": "2000"}
        reader = open_reader({**options, "credentials": str(credentials)}, None)
        with pytest.raises(SourceError, match="there is no stream 'S'"):
            reader.latest()
        unknown = open_reader({**options, "credentials": "none.creds"}, None)
        with pytest.raises(SourceError, match=r"none\.creds|\*\*\*"):
            unknown.latest()
        deliver(store, 0, "e0")
        transport = JetStreamTransport((guarded.address,), "S.x", credentials=str(credentials))
        send_all(store, declared("nats", transport), patience_s=0)
        assert "no stream listens to the subject" in str(channel_of(store).reason)


def test_a_restart_resumes_and_everything_is_delivered_once(
    server: NatsServer, stream: str, tmp_path: Path
) -> None:
    expected = write_stream(tmp_path, files=8)
    all_lines = lines(tmp_path)
    config = write_config(tmp_path, "nats", {"servers": server.address, "stream": stream})
    for part in (all_lines[:33], all_lines[33:]):
        server.send(stream, part)
        assert run_here(config).events == len(part)
    check(tmp_path, expected)


@pytest.mark.kill
def test_kills_in_mid_stream_lose_nothing_and_repeat_nothing(
    server: NatsServer, stream: str, tmp_path: Path
) -> None:
    expected = write_stream(tmp_path, files=12)
    server.send(stream, lines(tmp_path))
    options = {
        "servers": server.address,
        "stream": stream,
        "maxRecordsPerTrigger": 1 if KILLS else 5,
    }
    check_kills(write_config(tmp_path, "nats", options), expected, kills=20 if KILLS else 1)


def test_a_reader_works_inside_a_thread_of_a_loop(server: NatsServer, stream: str) -> None:
    server.send(stream, "a")

    async def ask() -> Any:
        return await asyncio.to_thread(reader(server, stream).latest)

    assert asyncio.run(ask()) == {stream: {"0": 2}}
