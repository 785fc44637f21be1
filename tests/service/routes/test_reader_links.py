"""Actions of readers without a token: only what a link says, and only after a question."""

from collections.abc import Iterator

import httpx2
import pytest
from tests.service.routes.serving import Served, problem, serving
from tests.service.running import client_of

from tidings import Delivery
from tidings.channels.address_book import EntryDraft, put_entry
from tidings.channels.person_channel import PersonChannel
from tidings.channels.reader_links import LinkOwner, ReaderLinks
from tidings.store.channels import Channel

LINK = "https://films.example/big-fish"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("links")) as running:
        content = [f'{{"link":"{LINK}"}}', '{"title":"no link"}', '{"link":"javascript:alert(1)"}']
        letters = [
            Delivery("ada", f"e{n}", 0.5, 1, {}, ("s",), 1, 0, text)
            for n, text in enumerate(content)
        ]
        running.store.notifications.append("q", 0, letters)
        yield running


@pytest.fixture
def channel(served: Served, request: pytest.FixtureRequest) -> Channel:
    person = PersonChannel("mail", "ada@films.example")
    return put_entry(served.store, EntryDraft("ada", request.node.name[:90], person, True), 0)


@pytest.fixture(scope="module")
def reader(served: Served) -> Iterator[httpx2.Client]:
    """Return a client without a token, which does not follow links."""
    with client_of(served.server) as client:
        yield client


def path(channel: Channel, action: str, number: int) -> str:
    owner = LinkOwner("default", channel.key, str(channel.settings["secret"]))
    return ReaderLinks("").link(owner, action, number)


def marks(served: Served) -> set[tuple[int, str]]:
    return {(mark.sequence, mark.mark) for mark in served.store.marks.of("ada", 0, 100)}


def is_paused(served: Served, channel: Channel) -> bool:
    found = served.store.channels.get(channel.key)
    assert found is not None
    return found.paused_us is not None


def test_a_look_changes_nothing_and_a_post_pauses(
    served: Served, reader: httpx2.Client, channel: Channel
) -> None:
    asked = reader.get(path(channel, "pause", 0))
    assert (asked.status_code, "Pause these messages?" in asked.text) == (200, True)
    assert '<form method="post"><button>Pause</button></form>' in asked.text
    assert not is_paused(served, channel)
    done = reader.post(path(channel, "pause", 0))
    assert "No more messages will be sent" in done.text
    assert "<form" not in done.text
    assert is_paused(served, channel)


def test_a_notification_is_marked_after_a_question(
    served: Served, reader: httpx2.Client, channel: Channel
) -> None:
    asked = reader.get(path(channel, "not-for-me", 2))
    assert "Is this not for you?" in asked.text
    assert (2, "not-for-me") not in marks(served)
    assert "Noted" in reader.post(path(channel, "not-for-me", 2)).text
    assert (2, "not-for-me") in marks(served)


def test_a_link_is_looked_up_and_marks_what_was_read(
    served: Served, reader: httpx2.Client, channel: Channel
) -> None:
    answer = reader.get(path(channel, "read", 1))
    assert (answer.status_code, answer.headers["location"]) == (303, LINK)
    assert (1, "read") in marks(served)


@pytest.mark.parametrize("number", [0, 2, 3, 4, 99])
def test_a_notification_without_a_link_leads_nowhere(
    served: Served, reader: httpx2.Client, channel: Channel, number: int
) -> None:
    assert problem(reader.get(path(channel, "read", number))) == (
        404,
        "there is nothing at this address",
        None,
    )
    assert (number, "read") not in marks(served)


def test_a_picture_is_seen_even_of_a_message_that_is_gone(
    reader: httpx2.Client, channel: Channel
) -> None:
    answer = reader.get(path(channel, "opened", 7))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/gif")
    assert answer.content.startswith(b"GIF89a")


@pytest.mark.parametrize("action", ["read", "opened"])
def test_what_is_only_looked_at_cannot_be_posted(
    reader: httpx2.Client, channel: Channel, action: str
) -> None:
    assert problem(reader.post(path(channel, action, 1))) == (
        404,
        "there is nothing to do at this address",
        None,
    )


def test_all_wrong_addresses_are_refused_alike(
    served: Served, reader: httpx2.Client, channel: Channel
) -> None:
    right = path(channel, "pause", 0)
    *_, sealed = right.split("/")
    wrong = [
        right[:-1] + ("A" if right[-1] != "A" else "B"),
        right.replace("/pause/0/", "/pause/1/"),
        right.replace("/pause/", "/not-for-me/"),
        right.replace("/pause/", "/delete/"),
        right.replace(channel.key, "0" * 24),
        right.replace("/default/", "/nobody/"),
        right.replace("/default/", "/DEFAULT/"),
        right.replace(sealed, "%C3%A4"),
    ]
    for address in wrong:
        for request in (reader.get, reader.post):
            assert problem(request(address)) == (404, "there is nothing at this address", None)
    assert not is_paused(served, channel)


def test_a_channel_that_is_gone_or_without_a_secret_has_no_links(
    served: Served, reader: httpx2.Client, channel: Channel
) -> None:
    address = path(channel, "pause", 0)
    served.store.channels.change_settings(channel.key, {"secret": ""})
    unsealed = ReaderLinks("").link(LinkOwner("default", channel.key, ""), "pause", 0)
    assert reader.get(unsealed).status_code == 404
    served.store.channels.remove(channel.key)
    assert reader.get(address).status_code == 404


def test_pages_run_no_scripts_and_are_not_kept(reader: httpx2.Client, channel: Channel) -> None:
    for action in ("pause", "opened"):
        headers = reader.get(path(channel, action, 0)).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-robots-tag"] == "noindex"
