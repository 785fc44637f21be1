"""A NATS server that takes credentials: an operator, an account, and a file of one user."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import nkeys
from tests.sources.nats_servers import NatsServer, running_nats


class KeyPair(NamedTuple):
    """A pair of keys of NATS, in its own spelling."""

    pair: Any
    seed: str

    @classmethod
    def make(cls, prefix: int) -> "KeyPair":
        """Return a new pair of an operator, an account or a user."""
        seed = nkeys.encode_seed(os.urandom(32), prefix)
        return cls(nkeys.from_seed(bytearray(seed)), seed.decode())

    @property
    def public(self) -> str:
        return str(self.pair.public_key.decode())

    def sign(self, name: str, subject: str, claims: dict[str, Any]) -> str:
        """Return a token about a subject, signed with this pair."""
        form = {"iat": 0, "iss": self.public, "name": name, "sub": subject}
        form |= {"nats": {"version": 2, **claims}}
        form["jti"] = base64.b32encode(hashlib.sha256(_json(form)).digest()).decode().rstrip("=")
        head = _encoded(_json({"typ": "JWT", "alg": "ed25519-nkey"}))
        text = f"{head}.{_encoded(_json(form))}"
        return f"{text}.{_encoded(self.pair.sign(text.encode()))}"


def _json(form: Any) -> bytes:
    return json.dumps(form, separators=(",", ":")).encode()


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@contextmanager
def server_with_accounts(folder: Path) -> Iterator[tuple[NatsServer, Path]]:
    """Run a server with JetStream that takes only one user; yield it, and the user's file."""
    operator = KeyPair.make(nkeys.PREFIX_BYTE_OPERATOR)
    system, account = (KeyPair.make(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(2))
    user = KeyPair.make(nkeys.PREFIX_BYTE_USER)
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    limits |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    of_account = {"type": "account", "limits": {**limits, "wildcards": True}}
    operator_token = operator.sign("o", operator.public, {"type": "operator"})
    # JetStream wants a system account, which has none of its own.
    of_system = {"type": "account", "limits": {**limits, "mem_storage": 0, "disk_storage": 0}}
    accounts = {
        account.public: operator.sign("a", account.public, of_account),
        system.public: operator.sign("s", system.public, of_system),
    }
    listed = "\n".join(f"{name}: {token}" for name, token in accounts.items())
    free = dict.fromkeys(("subs", "data", "payload"), -1)
    user_token = account.sign("u", user.public, {"type": "user", "pub": {}, "sub": {}, **free})
    (folder / "accounts.conf").write_text(
        f"operator: {operator_token}\nsystem_account: {system.public}\nresolver: MEMORY\n"
        f"resolver_preload: {{\n{listed}\n}}\n"
    )
    credentials = folder / "user.creds"
    credentials.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    with running_nats(folder, "-c", str(folder / "accounts.conf")) as server:
        yield server, credentials
