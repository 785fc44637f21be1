"""Webhooks at work: messages signed by the Standard Webhooks convention, sent at least once.

Each message has an id that stays the same when it is sent again, by which a receiver recognises a
repetition. One that fails is tried again after longer and longer pauses, for three days, and then
kept as given up. While a receiver fails, little is sent to it.
"""

import asyncio
import hmac
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import httpx2

from tidings.channels.sender import SENT, Message, OpenSender, Outcome, Status
from tidings.channels.webhook_target import TargetRules, read_url, resolve
from tidings.errors import InvalidForm, TidingsError, described
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.store.channels import Channel
from tidings.store.webhooks import Webhook

_ATTEMPT_S: Final = 15.0


def webhooks(rules: TargetRules, clock: Callable[[], float] = time.time) -> OpenSender:
    """Return what opens the senders of webhooks, which may go where the rules allow."""
    trust = httpx2.create_ssl_context()

    def open_sender(channel: Channel) -> WebhookSender:
        # A proxy would resolve names by itself, and a connection is to an address: another host at
        # the same one must not reuse it.
        http = httpx2.AsyncClient(
            verify=trust,
            follow_redirects=False,
            trust_env=False,
            timeout=_ATTEMPT_S,
            limits=httpx2.Limits(max_keepalive_connections=0),
        )
        return WebhookSender(Webhook.of(channel), rules, http, clock)

    return open_sender


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return a signature by the Standard Webhooks convention.

    >>> sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
    ...     b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}"


@dataclass(frozen=True)
class WebhookSender:
    """The sender of one webhook: a message after the other, each on a connection of its own."""

    webhook: Webhook
    rules: TargetRules
    http: httpx2.AsyncClient
    clock: Callable[[], float] = time.time
    batch: int = 1
    in_order: bool = False
    rate: float | None = None

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message.delivery) for message in messages]

    async def close(self) -> None:
        await self.http.aclose()

    async def _attempt(self, delivery: Delivery) -> Outcome:
        """Send a message once."""
        try:
            async with asyncio.timeout(_ATTEMPT_S):
                # Both are checked again each time: rules change, and names move.
                target = await resolve(read_url(self.webhook.url, self.rules), self.rules)
                body = encode_message(delivery)
                request = self.http.build_request(
                    "POST",
                    target.direct_url,
                    content=body,
                    headers={"Host": target.host_header, **self._headers(delivery, body)},
                    extensions={"sni_hostname": target.url.raw_host.decode("ascii")},
                )
                response = await self.http.send(request, stream=True)
                await response.aclose()  # only its status counts, however long it is
        except TimeoutError:
            return Outcome(Status.FAILED, f"no answer within {_ATTEMPT_S:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, InvalidForm, TidingsError, OSError) as error:
            return Outcome(Status.FAILED, described(error))
        if response.is_success:
            return SENT
        is_gone = response.status_code == httpx2.codes.GONE
        status = Status.GONE if is_gone else Status.FAILED
        return Outcome(status, f"the answer has status {response.status_code}")

    def _headers(self, delivery: Delivery, body: bytes) -> dict[str, str]:
        message_id, seconds = f"msg_{self.webhook.key}_{delivery.sequence}", int(self.clock())
        secrets = self.webhook.secrets(int(self.clock() * SECOND_US))
        signatures = [sign(secret, message_id, seconds, body) for secret in secrets]
        return {
            "Content-Type": "application/json",
            "User-Agent": "Tidings",
            "Webhook-Id": message_id,
            "Webhook-Timestamp": str(seconds),
            "Webhook-Signature": " ".join(signatures),
        }


def encode_message(delivery: Delivery) -> bytes:
    """Return the body of a message."""
    form: dict[str, Any] = {
        "type": "tidings.delivery",
        "timestamp": delivery.delivered_at,
        "data": delivery.to_dict(),
    }
    return json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()
