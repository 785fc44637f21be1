"""The address book as its owner meets it: verified, used, paused, and hidden from others."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.channels.mailbox import Mailbox, mail_server
from tests.service.receiving import Receiver, receiver
from tests.service.running import client_of, eventually, server_at
from tests.service.test_webhooks import subscriber_of

from tidings import Delivery
from tidings.channels import Dispatcher
from tidings.channels.person_senders import person_openers
from tidings.channels.smtp import SmtpSettings
from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings
from tidings.store import Store, open_store

PATH = "/v1/subscribers/ada/channels"
MAIL = {"kind": "mail", "address": "ada@example.org", "every": "delivery"}


def settings_of(box: Mailbox, **more: Any) -> ServiceSettings:
    smtp = SmtpSettings("127.0.0.1", "Films <t@films.example>", box.port, "none")
    networks = ("127.0.0.0/8",)
    return ServiceSettings(mail=smtp, webhook_networks=networks, rate=10_000, **more)


@pytest.fixture
def address(tmp_path: Path) -> str:
    path = str(tmp_path / "tidings.db")
    with open_store(path) as store:
        store.catalogue.put({"id": "ada"}, {"id": "bob"})
        store.catalogue.put({"id": "s1", "subscriber": "ada", "where": "genre = 'drama'"})
    return path


@pytest.fixture(scope="module")
def box() -> Iterator[Mailbox]:
    with mail_server() as box:
        yield box


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory, box: Mailbox) -> Iterator[httpx2.Client]:
    path = str(tmp_path_factory.mktemp("channels") / "t.db")
    with open_store(path) as store:
        store.catalogue.put({"id": "ada"})
    with server_at(path, settings_of(box)) as server, client_of(server) as client:
        yield client


@contextmanager
def sending(store: Store, settings: ServiceSettings) -> Iterator[None]:
    """Run the dispatcher of people's channels in a thread."""
    stop = threading.Event()
    dispatcher = Dispatcher(store, person_openers(store, "default", settings.people))
    thread = threading.Thread(target=dispatcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def deliver(store: Store, batch: int, event: str, content: dict[str, Any] | None = None) -> None:
    text = None if content is None else json.dumps(content)
    delivery = Delivery("ada", event, 0.5, 1, {}, ("s1",), 0, 0, text)
    store.notifications.append("q", batch, [delivery])


def code_of(box: Mailbox) -> str:
    found = re.search(r"is (\w{3}-\w{3}-\w{4})\.", box.mails[-1].get_content())
    assert found is not None
    return found[1]


def test_kinds_that_cannot_be_sent_are_not_offered(address: str, box: Mailbox) -> None:
    for settings, kinds in (
        (settings_of(box), ["mail", "slack", "teams"]),
        (ServiceSettings(), ["slack", "teams"]),
    ):
        with server_at(address, settings) as server, client_of(server) as admin:
            assert admin.get(PATH).json() == {"items": [], "kinds": kinds}


def test_an_address_is_verified_before_anything_is_sent_there(address: str, box: Mailbox) -> None:
    settings = settings_of(box)
    with (
        server_at(address, settings) as server,
        subscriber_of(address, server, "ada") as ada,
        open_store(address) as store,
        sending(store, settings),
    ):
        put = ada.put(f"{PATH}/home", json=MAIL)
        assert (put.status_code, put.json()["verified"]) == (201, False)
        deliver(store, 0, "too-early")
        assert ada.post(f"{PATH}/home/verify", json={"code": "x"}).status_code == 409
        assert ada.post(f"{PATH}/home/code").status_code == 200
        code, before = code_of(box), len(box.mails)
        wrong = ada.post(f"{PATH}/home/verify", json={"code": "AAAAAAAAAA"})
        assert wrong.json()["detail"] == "this is not the code that was sent"
        verified = ada.post(f"{PATH}/home/verify", json={"code": code.lower()})
        assert verified.json()["verified"] is True, verified.text
        assert ada.post(f"{PATH}/home/verify", json={"code": code}).status_code == 409
        assert ada.post(f"{PATH}/home/code").status_code == 409
        deliver(store, 1, "e1")
        eventually(lambda: len(box.mails) > before)
        mail = box.mails[-1]
        assert (mail["To"], mail["Subject"]) == ("ada@example.org", "e1")
        moved = ada.put(f"{PATH}/home", json={**MAIL, "address": "new@example.org"})
        assert (moved.status_code, moved.json()["verified"]) == (200, False)
        assert len(box.mails) == before + 1


def test_codes_are_few_and_soon_used_up(admin: httpx2.Client, box: Mailbox) -> None:
    victim = {**MAIL, "address": "victim@example.org"}
    admin.put(f"{PATH}/home", json=victim)
    for _ in range(5):
        assert admin.post(f"{PATH}/home/code").status_code == 200
    first = code_of(box)
    admin.delete(f"{PATH}/home")
    admin.put(f"{PATH}/again", json=victim)
    refused = admin.post(f"{PATH}/again/code")
    assert refused.status_code == 409
    assert "try again tomorrow" in refused.json()["detail"]
    assert admin.post(f"{PATH}/again/verify", json={"code": first}).status_code == 409
    other = {**MAIL, "address": "other@example.org"}
    admin.put(f"{PATH}/other", json=other)
    admin.post(f"{PATH}/other/code")
    code = code_of(box)
    for _ in range(5):
        admin.post(f"{PATH}/other/verify", json={"code": "A"})
    late = admin.post(f"{PATH}/other/verify", json={"code": code})
    assert "five times" in late.json()["detail"]


def test_a_code_that_bounces_is_reported(admin: httpx2.Client, box: Mailbox) -> None:
    admin.put(f"{PATH}/nobody", json={**MAIL, "address": "nobody@example.org"})
    box.recipients.append("550 5.1.1 No such user")
    answer = admin.post(f"{PATH}/nobody/code")
    assert answer.status_code == 409
    assert "550 5.1.1 No such user" in answer.json()["detail"]


def test_a_channel_is_paused_resumed_and_removed(address: str, box: Mailbox) -> None:
    settings = settings_of(box)
    with (
        server_at(address, settings) as server,
        client_of(server) as admin,
        open_store(address) as store,
        sending(store, settings),
    ):
        before = len(box.mails)
        admin.put(f"{PATH}/home", json={**MAIL, "verified": True})
        assert admin.post(f"{PATH}/home/pause").json()["paused"] is True
        deliver(store, 0, "missed")
        assert admin.get(f"{PATH}/home").json()["waiting"] == 1
        resumed = admin.post(f"{PATH}/home/resume").json()
        assert (resumed["paused"], resumed["waiting"]) == (False, 0)
        deliver(store, 1, "e1")
        eventually(lambda: len(box.mails) > before)
        assert box.mails[-1]["Subject"] == "e1"
        eventually(lambda: admin.get(f"{PATH}/home").json()["sent"] == 1)
        assert [item["id"] for item in admin.get(PATH).json()["items"]] == ["home"]
        assert admin.delete(f"{PATH}/home").json() == {"removed": True}
        assert admin.get(f"{PATH}/home").status_code == 404


def test_a_bounce_is_listed_and_sent_again_on_request(address: str, box: Mailbox) -> None:
    settings = settings_of(box)
    with (
        server_at(address, settings) as server,
        client_of(server) as admin,
        open_store(address) as store,
        sending(store, settings),
    ):
        admin.put(f"{PATH}/home", json={**MAIL, "verified": True})
        before = len(box.mails)
        box.recipients.append("550 5.1.1 No such user")
        deliver(store, 0, "e1")
        eventually(lambda: admin.get(f"{PATH}/home").json()["failed"])
        [failed] = admin.get(f"{PATH}/home").json()["failed"]
        assert (failed["sequence"], failed["next_at"]) == (1, None)
        assert "No such user" in failed["reason"]
        admin.post(f"{PATH}/home/retry")
        eventually(lambda: len(box.mails) > before)
        eventually(lambda: admin.get(f"{PATH}/home").json()["failed"] == [])


def test_chats_get_messages_and_say_when_it_is_too_much(address: str, box: Mailbox) -> None:
    settings = settings_of(box)
    with (
        receiver() as chat,
        server_at(address, settings) as server,
        client_of(server) as admin,
        open_store(address) as store,
        sending(store, settings),
    ):
        form = {"kind": "slack", "address": chat.url, "min_rank": 0.4}
        put = admin.put(f"{PATH}/chat", json=form)
        assert put.json()["address"] == f"http://127.0.0.1:{chat.server_port}/..."
        assert put.json()["every"] == "delivery"
        admin.post(f"{PATH}/chat/code")
        [section] = body(chat, 0)["blocks"][0]["elements"]
        code = re.search(r"\w{3}-\w{3}-\w{4}", section["elements"][0]["text"])
        assert code is not None
        assert admin.post(f"{PATH}/chat/verify", json={"code": code[0]}).json()["verified"]
        chat.statuses[:] = [503, 200]
        deliver(store, 0, "e1")
        eventually(lambda: len(chat.received) == 3)
        assert body(chat, 1) == body(chat, 2)
        eventually(lambda: admin.get(f"{PATH}/chat").json()["sent"] == 1)
        chat.statuses[:] = [404]
        deliver(store, 1, "e2")
        eventually(lambda: admin.get(f"{PATH}/chat").json()["disabled"])
        assert "/hook" not in admin.get(f"{PATH}/chat").text


def body(chat: Receiver, number: int) -> Any:
    return json.loads(chat.received[number].body)


@pytest.mark.parametrize(
    ("form", "pointer"),
    [
        ({"kind": "pigeon", "address": "x"}, "/kind"),
        ({"kind": "mail", "address": "a@b.example\r\nBcc: c@d.example"}, "/address"),
        ({"kind": "slack", "address": "http://10.0.0.1/"}, "/address"),
        ({"kind": "slack", "address": "file:///etc/passwd"}, "/address"),
        ({"kind": "mail", "address": "a@b.example", "zone": "Mars"}, "/zone"),
        ({"kind": "mail", "address": "a@b.example", "at": ["25:00"]}, "/at/0"),
        ({"kind": "mail", "address": "a@b.example", "every": "hour", "at": ["08:00"]}, "/every"),
        (
            {"kind": "mail", "address": "a@b.example", "min_rank": 0.9, "below_rank": 0.5},
            "/min_rank",
        ),
        ({"kind": "mail", "address": "a@b.example", "interests": [7]}, "/interests/0"),
        ({"kind": "mail", "address": "a@b.example", "color": "red"}, "/color"),
    ],
)
def test_a_wrong_channel_is_refused(
    admin: httpx2.Client, form: dict[str, Any], pointer: str
) -> None:
    answer = admin.put(f"{PATH}/wrong", json=form)
    assert answer.status_code == 422, answer.text
    assert answer.json()["pointer"] == pointer
    assert len(answer.content) < 2_000


def test_a_subscriber_reaches_only_its_own(address: str, box: Mailbox) -> None:
    with server_at(address, settings_of(box, channels=2)) as server:
        with (
            subscriber_of(address, server, "ada") as ada,
            subscriber_of(address, server, "bob") as bob,
        ):
            assert ada.put(f"{PATH}/home", json=MAIL).status_code == 201
            vouched = ada.put(f"{PATH}/home", json={**MAIL, "verified": True})
            assert (vouched.status_code, vouched.json()["pointer"]) == (422, "/verified")
            for method, path, form in calls():
                answer = bob.request(method, path, json=form)
                assert answer.status_code == 403, path
            assert ada.put(f"{PATH}/two", json=MAIL).status_code == 201
            assert ada.put(f"{PATH}/three", json=MAIL).status_code == 409
            changed = ada.put(
                f"{PATH}/two", json={"kind": "slack", "address": "https://x.example/"}
            )
            assert changed.status_code == 409
        with open_store(address) as store:
            tokens = [
                store.tokens.create("publisher", 0),
                store.tokens.create("admin", 0, tenant="acme"),
            ]
        for token, status in zip((*tokens, None), (403, 404, 401), strict=True):
            with client_of(server, token) as other:
                for method, path, form in calls():
                    assert other.request(method, path, json=form).status_code == status, path


def calls() -> list[tuple[str, str, Any]]:
    return [
        ("GET", PATH, None),
        ("PUT", f"{PATH}/home", MAIL),
        ("GET", f"{PATH}/home", None),
        ("DELETE", f"{PATH}/home", None),
        *(("POST", f"{PATH}/home/{verb}", None) for verb in ("code", "pause", "resume", "retry")),
        ("POST", f"{PATH}/home/verify", {"code": "x"}),
        ("GET", "/v1/notifications/ada/marks", None),
        ("POST", "/v1/notifications/ada/marks", {"sequence": 1, "mark": "read"}),
    ]


def test_without_a_mail_server_there_is_no_mail(address: str, box: Mailbox) -> None:
    settings = replace(settings_of(box), mail=None)
    with server_at(address, settings) as server, client_of(server) as admin:
        answer = admin.put(f"{PATH}/home", json=MAIL)
        assert answer.status_code == 409
        assert "[mail]" in answer.json()["detail"]


def links_of(mail: Any) -> dict[str, str]:
    text = mail.get_body(("plain",)).get_content()
    found = re.findall(r"(Not for me|Pause these messages): http://readers\.example(\S+)", text)
    return dict(found)


def test_readers_act_from_a_mail(address: str, box: Mailbox) -> None:
    settings = settings_of(box, public_url="http://readers.example/", track=True)
    with (
        server_at(address, settings) as server,
        client_of(server) as admin,
        open_store(address) as store,
    ):
        admin.put(f"{PATH}/home", json={**MAIL, "verified": True})
        before = len(box.mails)
        with sending(store, settings):
            deliver(store, 0, "e1", {"link": "https://films.example/1"})
            eventually(lambda: len(box.mails) > before)
        mail = box.mails[-1]
        links, reader = links_of(mail), anonymous(server)
        assert (
            mail["List-Unsubscribe"] == f"<http://readers.example{links['Pause these messages']}>"
        )
        dismiss = links["Not for me"]
        assert "<form" in reader.get(dismiss).text  # a scanner that follows it changes nothing
        assert marks(admin) == []
        assert reader.post(dismiss).status_code == 200
        assert marks(admin) == [(1, "not-for-me", "home")]
        part = mail.get_body(("html",))
        assert part is not None
        document = part.get_content()
        visit, pixel = re.findall(
            r'"http://readers\.example(/readers/[^"]*/(?:read|opened)/[^"]*)"', document
        )
        answer = reader.get(visit)
        assert (answer.status_code, answer.headers["location"]) == (303, "https://films.example/1")
        assert reader.get(pixel).headers["content-type"] == "image/gif"
        assert [mark for _, mark, _ in marks(admin)] == ["not-for-me", "opened", "read"]
        pause = links["Pause these messages"]
        assert reader.get(pause).status_code == 200
        assert admin.get(f"{PATH}/home").json()["paused"] is False
        click = {"List-Unsubscribe": "One-Click"}
        assert reader.post(pause, data=click).status_code == 200
        assert admin.get(f"{PATH}/home").json()["paused"] is True
        reader.close()


def anonymous(server: WebServer) -> httpx2.Client:
    return httpx2.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60)


def marks(client: httpx2.Client) -> list[tuple[int, str, str]]:
    items = client.get("/v1/notifications/ada/marks").json()["items"]
    return [(item["sequence"], item["mark"], item["channel"]) for item in items]


def test_addresses_of_readers_cannot_be_guessed_or_moved(address: str, box: Mailbox) -> None:
    settings = settings_of(box, public_url="http://readers.example")
    with (
        server_at(address, settings) as server,
        client_of(server) as admin,
        open_store(address) as store,
    ):
        admin.put(f"{PATH}/home", json={**MAIL, "verified": True})
        before = len(box.mails)
        with sending(store, settings):
            deliver(store, 0, "e1")
            eventually(lambda: len(box.mails) > before)
        links = links_of(box.mails[-1])
        _, _, tenant, key, action, number, sealed = links["Not for me"].split("/")
        reader = anonymous(server)
        for parts in (
            (tenant, key, action, "2", sealed),
            (tenant, key, "pause", number, sealed),
            (tenant, key, "read", number, sealed),
            (tenant, key, "other", number, sealed),
            (tenant, "0" * 24, action, number, sealed),
            ("acme", key, action, number, sealed),
            (tenant, key, action, number, sealed[:-1] + "é"),
        ):
            path = f"/readers/{'/'.join(parts)}"
            assert reader.post(path).status_code == 404, path
            assert reader.get(path).status_code == 404, path
        assert marks(admin) == []
        assert not list(Path(address).parent.glob("*acme*"))
        document = box.mails[-1].get_body(("html",))
        assert document is not None
        assert "<img" not in document.get_content()
        reader.close()
