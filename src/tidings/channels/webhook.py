"""The sender of webhooks: messages signed by the Standard Webhooks convention, at least once.

Each message has an id that stays the same when it is sent again, by which a receiver recognises a
repetition. One that fails is tried again after longer and longer pauses, for three days, and then
kept as given up; others are sent in the meantime. While the receiver does not answer, all wait, and
then arrive in order.
"""

import hmac
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import httpx2

from tidings.channels.guarded_post import open_http, post
from tidings.channels.sender import SENT, Message, OpenSender, Outcome, Status
from tidings.channels.webhook_target import TargetRules
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.store.channels import Channel
from tidings.store.webhooks import Webhook


def webhooks(rules: TargetRules, clock: Callable[[], float] = time.time) -> OpenSender:
    """Return the function that opens the senders of webhooks, to targets that the rules allow."""
    trust = httpx2.create_ssl_context()

    def open_sender(channel: Channel) -> WebhookSender:
        return WebhookSender(Webhook.of(channel), rules, open_http(trust), clock)

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
    """The sender of one webhook: one message after the other, each on its own connection."""

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
        body = encode_message(delivery)
        headers = self._headers(delivery, body)
        answer = await post(self.http, self.webhook.url, self.rules, body, headers)
        if answer.is_success:
            return SENT
        reason = f"the answer has status {answer.status}" if answer.status else answer.text
        if answer.is_away:
            return Outcome(Status.AWAY, reason)
        is_gone = answer.status == httpx2.codes.GONE
        return Outcome(Status.GONE if is_gone else Status.FAILED, reason)

    def _headers(self, delivery: Delivery, body: bytes) -> dict[str, str]:
        message_id, seconds = f"msg_{self.webhook.key}_{delivery.sequence}", int(self.clock())
        secrets = self.webhook.secrets(int(self.clock() * SECOND_US))
        signatures = [sign(secret, message_id, seconds, body) for secret in secrets]
        return {
            "Content-Type": "application/json",
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
