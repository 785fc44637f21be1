"""Redaction of passwords in everything that is shown: options by their keys, texts by their parts.

The value of an option is hidden if its key may name a secret. Texts from elsewhere, such as errors
of a driver, are shown without the hidden values.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote, unquote

from tidings.errors import InvalidForm, TidingsError, shown

HIDDEN: Final = "***"
Hide = Callable[[str], str]

_SECRET: Final = re.compile(
    r"passw|pwd|pass$|secret|token|key|jaas|credential|auth|sasl|user|url|dsn|conninfo|connection",
    re.IGNORECASE,
)
# The key of a table, and the serializers of record keys, are not secret.
_HARMLESS: Final = re.compile(r"^key$|serializer|converter|sasl\.mechanism|timeout", re.IGNORECASE)
_CREDENTIALS: Final = re.compile(r"pass(?:word|wd)?\b|\bpwd\b|secret", re.IGNORECASE)
_FOLLOWED: Final = re.compile(rf"(?:{_CREDENTIALS.pattern})\W*\s", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile(r"\w\s*=")
_SCHEME: Final = re.compile(r"^\W*[A-Za-z][\w+.\-]+\s*:")
_AUTHORITY: Final = re.compile(r"//[^/]*:")
_SERVER: Final = re.compile(r"(?:[A-Za-z_]+://)?(?:[\w.\-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/?")
_SIGNS: Final = re.compile(r"[/#?@:;&=,\s'\"]+")
_SIGNED: Final = "The Canonical String"
# Shorter parts occur in many words and reveal nothing; those below `_LONG` are hidden only if they
# are whole words.
_SHORTEST: Final = 4
_LONG: Final = 8
_PROTOCOLS: Final = frozenset(
    ("jdbc", "postgresql", "postgres", "sqlite", "mysql", "http", "https")
)


def is_secret(key: str) -> bool:
    """Return whether the value of an option may be secret, judging by its name.

    >>> is_secret("kafka.sasl.jaas.config"), is_secret("subscribe")
    (True, False)
    """
    return bool(_SECRET.search(key)) and not _HARMLESS.search(key)


def may_hide_password(text: str) -> bool:
    """Return whether a text that should be a path or a name may hold a password."""
    return is_like_address(text) or bool(_CREDENTIALS.search(text))


def is_like_address(text: str) -> bool:
    """Return whether a text has the form of an address, or of credentials.

    A file may be called `secret.db`: the word alone is not a password.
    """
    forms = (_SCHEME, _AUTHORITY, _ASSIGNMENT, _FOLLOWED)
    return "@" in text or "://" in text or any(form.search(text) for form in forms)


def is_server(text: str) -> bool:
    """Return whether a text is a host, with or without a scheme and a port, and nothing else.

    >>> is_server("nats://node1:4222"), is_server("nats://ann:swordfish")
    (True, False)
    """
    return _SERVER.fullmatch(text) is not None


def shown_server(text: str) -> str:
    """Return a short `repr` of a server, or *** if a text is more than the name of one.

    >>> shown_server("node1:4222"), shown_server("ann:swordfish/node1")
    ("'node1:4222'", '***')
    """
    return shown(text) if is_server(text) else HIDDEN


def shown_safely(value: object) -> str:
    """Return a short `repr` of a value, or *** if it looks like an address.

    >>> shown_safely("out/films"), shown_safely("postgresql://ann:swordfish@host/db")
    ("'out/films'", '***')
    """
    try:
        whole = str(value)[:10_000]
    except RecursionError:
        return HIDDEN
    return HIDDEN if may_hide_password(whole) else shown(value)


def hider(secrets: Iterable[str]) -> Hide:
    """Return a function that hides these values, and their parts, in any text.

    >>> hider(["s3cret/word"])('invalid integer value "word" of s3cret%2Fword')
    'invalid integer value "***" of ***'
    """
    values = [secret for secret in secrets if secret]
    if not values:
        return str
    spellings = {form for secret in values for form in _spellings(secret)}
    words = _any_of(form for form in spellings if len(form) < _LONG)
    whole = _any_of(form for form in spellings if len(form) >= _LONG)
    pattern = re.compile(
        f"(?:{whole})|(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{{2}}))(?:{words})(?![A-Za-z0-9])"
        f"|(?<=[\"'])(?:{_any_of(values)})(?=[\"'])"
    )
    return lambda text: pattern.sub(HIDDEN, text)


def without_signed_text(answer: str) -> str:
    """Return an answer of Amazon's without the request that it repeats if a signature is wrong.

    Its headers are part of that, and the session token is one of them.

    >>> without_signed_text("It does not match. The Canonical String should be ...")
    'It does not match.'
    """
    return answer.partition(_SIGNED)[0].rstrip()


def hider_of(options: Mapping[str, str]) -> Hide:
    """Return a function that hides the secret values of options in any text."""
    return hider([value for key, value in options.items() if is_secret(key)])


@contextmanager
def hide_logins(form: object) -> Iterator[None]:
    """Hide the logins of all addresses in a form, under whatever key, in an error about it.

    >>> with hide_logins({"every": ["https://ann:swordfish@host"]}):
    ...     raise InvalidForm("every is day, not 'https://ann:swordfish@host'")
    Traceback (most recent call last):
    tidings.errors.InvalidForm: every is day, not 'https://***@host'
    """
    try:
        yield
    except TidingsError as error:
        text = str(error)
        hidden = hider(_logins(form))(text)
        if hidden == text:
            raise
        raise InvalidForm(hidden) from None


def _logins(form: object) -> Iterator[str]:
    """Yield the parts between `://` and `@` of all texts in a form."""
    waiting = [form]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            login = value.partition("://")[2].rpartition("@")[0]
            if login:
                yield login


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern for any of the texts, the longest first; for none, one without matches."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)"


def _spellings(secret: str) -> set[str]:
    """Return the forms of a secret in texts: whole, in parts, percent-encoded or decoded."""
    plain = unquote(secret)
    parts = [part for text in (secret, plain) for part in _SIGNS.split(text)]
    forms = {secret, plain, quote(plain, safe=""), quote(plain), *parts}
    return {form for form in forms if len(form) >= _SHORTEST} - _PROTOCOLS
