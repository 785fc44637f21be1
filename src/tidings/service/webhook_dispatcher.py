"""Webhooks at work: messages signed by the Standard Webhooks convention, sent at least once.

Each message has an id that stays the same when it is sent again, by which a receiver recognises a
repetition. One that fails is tried again after longer and longer pauses, for three days, and then
kept as given up. While a receiver fails, little is sent to it.
"""

import asyncio
import hmac
import json
import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from threading import Event as Flag
from typing import Any, Final, NamedTuple

import httpx2

from tidings.errors import InvalidForm, StoreError, TidingsError, described
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.service.settings import ServiceSettings
from tidings.service.webhook_target import TargetRules, read_url, resolve
from tidings.store import Store
from tidings.store.webhooks import Retry, Webhook

_LOG: Final = logging.getLogger(__name__)
PAUSES_S: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Before the next attempt of a message, after each one that fails."""
_LONGEST_REST_S: Final = 300
_ATTEMPT_S: Final = 15.0
_TURN_S: Final = 20.0
"""How long one webhook is served at a time."""
_LEASE_S: Final = 60.0
"""Above the two together, so that no other dispatcher serves it meanwhile."""
_AT_ONCE: Final = 64
_LOOK_EVERY_S: Final = 1.0
_GRACE_S: Final = 5.0


class Message(NamedTuple):
    """A notification to be sent, and how often that has failed."""

    delivery: Delivery
    attempts: int


class Outcome(NamedTuple):
    """What came of an attempt: None for success; a webhook that is `gone` is not used again."""

    failure: str | None
    gone: bool = False


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return a signature by the Standard Webhooks convention.

    >>> sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
    ...     b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}"


class WebhookDispatcher:
    """The sender of the notifications of a tenant; several may run over one store."""

    def __init__(
        self, store: Store, settings: ServiceSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._clock = store, clock
        self._rules = TargetRules.of(settings)
        self._http = httpx2.AsyncClient(
            follow_redirects=False,
            trust_env=False,  # a proxy would resolve names by itself
            timeout=_ATTEMPT_S,
            # A connection is to an address; another host at the same one must not reuse it.
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    def run(self, stop: Flag) -> None:
        """Send until the flag is set."""
        asyncio.run(self._run(stop))

    async def _run(self, stop: Flag) -> None:
        watch = self._store.database.watch()
        tasks = dict[str, asyncio.Task[None]]()
        try:
            while not stop.is_set():
                try:
                    await self._start_due(tasks)
                    await asyncio.to_thread(watch.wait, _LOOK_EVERY_S)
                except StoreError as error:
                    _LOG.warning("webhooks wait for the store: %s", error)
                    await asyncio.to_thread(stop.wait, _LOOK_EVERY_S)
            if tasks:
                await asyncio.wait(tasks.values(), timeout=_GRACE_S)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            await self._http.aclose()
            watch.close()

    async def _start_due(self, tasks: dict[str, asyncio.Task[None]]) -> None:
        due = await asyncio.to_thread(self._store.webhooks.due, self._now_us())
        for webhook in due:
            if webhook.key not in tasks and len(tasks) < _AT_ONCE:
                task = asyncio.create_task(self._serve(webhook.key))
                tasks[webhook.key] = task
                task.add_done_callback(lambda _, key=webhook.key: tasks.pop(key))  # type: ignore[misc]

    async def _serve(self, key: str) -> None:
        """Send what is due of one webhook, until it fails or its turn is over."""
        webhooks, now_us = self._store.webhooks, self._now_us()
        until_us = now_us + int(_LEASE_S * SECOND_US)
        try:
            if not await asyncio.to_thread(webhooks.lease, key, now_us, until_us):
                return
            ends = time.monotonic() + _TURN_S
            while time.monotonic() < ends and await self._serve_one(key):
                pass
            await asyncio.to_thread(webhooks.release, key)
        except StoreError as error:
            _LOG.warning("webhook %s waits for the store: %s", key, error)

    async def _serve_one(self, key: str) -> bool:
        """Send one message; return whether the webhook may have another one."""
        webhook = await asyncio.to_thread(self._store.webhooks.get, key)
        if webhook is None or webhook.disabled is not None:
            return False
        message = await asyncio.to_thread(self._next, webhook)
        if message is None:
            return False
        outcome = await self._attempt(webhook, message.delivery)
        await asyncio.to_thread(self._note, webhook, message, outcome)
        return outcome.failure is None

    def _next(self, webhook: Webhook) -> Message | None:
        """Return the next message of a webhook: a due retry, or a new notification."""
        after = self._store.notifications.after
        for retry in self._store.webhooks.retries(webhook.key, self._now_us()):
            found = after(webhook.subscriber, retry.sequence - 1, limit=1)
            if found and found[0].sequence == retry.sequence:
                return Message(found[0], retry.attempts)
            gone = retry._replace(next_us=None, reason="the notification was pruned")
            self._store.webhooks.failed(webhook.key, gone, webhook.next_us)
        new = after(webhook.subscriber, webhook.sequence, limit=1)
        return Message(new[0], 0) if new else None

    async def _attempt(self, webhook: Webhook, delivery: Delivery) -> Outcome:
        """Send a message once."""
        try:
            async with asyncio.timeout(_ATTEMPT_S):
                # Both are checked again each time: rules change, and names move.
                target = await resolve(read_url(webhook.url, self._rules), self._rules)
                body = encode_message(delivery)
                request = self._http.build_request(
                    "POST",
                    target.direct_url,
                    content=body,
                    headers={"Host": target.host_header, **self._headers(webhook, delivery, body)},
                    extensions={"sni_hostname": target.url.raw_host.decode("ascii")},
                )
                response = await self._http.send(request, stream=True)
                await response.aclose()  # only its status counts, however long it is
        except TimeoutError:
            return Outcome(f"no answer within {_ATTEMPT_S:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, InvalidForm, TidingsError, OSError) as error:
            return Outcome(described(error))
        status = response.status_code
        if response.is_success:
            return Outcome(None)
        return Outcome(f"the answer has status {status}", gone=status == httpx2.codes.GONE)

    def _headers(self, webhook: Webhook, delivery: Delivery, body: bytes) -> dict[str, str]:
        message_id, seconds = f"msg_{webhook.key}_{delivery.sequence}", int(self._clock())
        secrets = webhook.secrets(self._now_us())
        signatures = [sign(secret, message_id, seconds, body) for secret in secrets]
        return {
            "Content-Type": "application/json",
            "User-Agent": "Tidings",
            "Webhook-Id": message_id,
            "Webhook-Timestamp": str(seconds),
            "Webhook-Signature": " ".join(signatures),
        }

    def _note(self, webhook: Webhook, message: Message, outcome: Outcome) -> None:
        """Write down what came of an attempt."""
        sequence, webhooks = message.delivery.sequence, self._store.webhooks
        if outcome.failure is None:
            webhooks.succeeded(webhook.key, sequence)
            return
        attempts, now_us = message.attempts + 1, self._now_us()
        given_up = attempts > len(PAUSES_S)
        again_us = None if given_up else now_us + PAUSES_S[attempts - 1] * SECOND_US
        rest_s = min(_LONGEST_REST_S, 2 ** min(webhook.failures, 10))
        retry = Retry(sequence, attempts, again_us, outcome.failure)
        disabled = outcome.failure if outcome.gone else None
        webhooks.failed(webhook.key, retry, now_us + rest_s * SECOND_US, disabled)
        level = logging.WARNING if given_up or outcome.gone else logging.INFO
        _LOG.log(level, "webhook %s, attempt %d: %s", webhook.id, attempts, outcome.failure)

    def _now_us(self) -> int:
        return int(self._clock() * SECOND_US)


def encode_message(delivery: Delivery) -> bytes:
    """Return the body of a message."""
    form: dict[str, Any] = {
        "type": "tidings.delivery",
        "timestamp": delivery.delivered_at,
        "data": delivery.to_dict(),
    }
    return json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()
