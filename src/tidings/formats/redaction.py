"""Keeps passwords out of everything that is shown: options by their keys, and texts by their parts.

A key that may name a secret hides its value. A text of others, such as an error of a driver, is
shown without the values that were hidden.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

from tidings.errors import shown

HIDDEN: Final = "***"
Hide = Callable[[str], str]

_SECRET: Final = re.compile(
    r"passw|pwd|pass$|secret|token|key|jaas|credential|auth|sasl|user|url|dsn|conninfo|connection",
    re.IGNORECASE,
)
# The key of a table, and those that say how the keys of records are written, are no secrets.
_HARMLESS: Final = re.compile(r"^key$|serializer|converter|sasl\.mechanism|timeout", re.IGNORECASE)
_CREDENTIALS: Final = re.compile(r"@|pass(?:word|wd)?\b|\bpwd\b|secret", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile(r"\w\s*=")
_SCHEME: Final = re.compile(r"^\W*[A-Za-z][\w+.\-]+\s*:")
_SIGNS: Final = re.compile(r"[/#?@:;&=,\s'\"]+")
# Shorter parts occur in many words, and give nothing away; those below `_LONG` are hidden where
# they are whole words.
_SHORTEST: Final = 4
_LONG: Final = 8
_PROTOCOLS: Final = frozenset(
    ("jdbc", "postgresql", "postgres", "sqlite", "mysql", "http", "https")
)


def is_secret(key: str) -> bool:
    """Tell whether the value of an option may hold a secret, by the name of the option.

    >>> is_secret("kafka.sasl.jaas.config"), is_secret("subscribe")
    (True, False)
    """
    return bool(_SECRET.search(key)) and not _HARMLESS.search(key)


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """Return options as they may be shown.

    >>> masked({"subscribe": "films", "kafka.sasl.password": "swordfish"})
    {'subscribe': 'films', 'kafka.sasl.password': '***'}
    """
    return {key: HIDDEN if is_secret(key) else value for key, value in options.items()}


def may_hide_password(text: str) -> bool:
    """Tell whether a text that should be a path or a name looks like an address."""
    return bool(_CREDENTIALS.search(text) or _SCHEME.search(text) or _ASSIGNMENT.search(text))


def shown_safely(value: object) -> str:
    """Return a short `repr` of a value, or a mark where it looks like an address.

    >>> shown_safely("out/films"), shown_safely("postgresql://ann:swordfish@host/db")
    ("'out/films'", '***')
    """
    text = shown(value)
    return HIDDEN if may_hide_password(str(value)[:10_000]) else text


def hider(secrets: Iterable[str]) -> Hide:
    """Return a function that hides these values, and their parts, in any text.

    >>> hider(["s3cret/word"])('invalid integer value "word" of s3cret%2Fword')
    'invalid integer value "***" of ***'
    """
    given = [secret for secret in secrets if secret]
    if not given:
        return str
    found = {form for secret in given for form in _spellings(secret)}
    words = _any_of(form for form in found if len(form) < _LONG)
    whole = _any_of(form for form in found if len(form) >= _LONG)
    pattern = re.compile(
        f"(?:{whole})|(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{{2}}))(?:{words})(?![A-Za-z0-9])"
        f"|(?<=[\"'])(?:{_any_of(given)})(?=[\"'])"
    )
    return lambda text: pattern.sub(HIDDEN, text)


def hider_of(options: Mapping[str, str]) -> Hide:
    """Return a function that hides the secret values of options in any text."""
    return hider([value for key, value in options.items() if is_secret(key)])


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern of all texts, the longest first; of none, one that matches nothing."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)"


def _spellings(secret: str) -> set[str]:
    """Return a secret as it may occur in a text: whole, in parts, percent-encoded or decoded."""
    plain = unquote(secret)
    parts = [part for text in (secret, plain) for part in _SIGNS.split(text)]
    forms = {secret, plain, quote(plain, safe=""), quote(plain), *parts}
    return {form for form in forms if len(form) >= _SHORTEST} - _PROTOCOLS
