"""Cards: notifications as people see them, wherever they read them.

A card holds plain text and checked links, never markup. Each place lays it out in its own format
(`channels/layouts.py`), so that one template serves mail and chat, and nothing that was published
can become markup in any of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from tidings.channels.text_template import TextTemplate
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.json_forms import fields
from tidings.model.records import Delivery

TITLE_CHARACTERS: Final = 300
_SUMMARY_CHARACTERS: Final = 1_000
_REASON_CHARACTERS: Final = 500
_LINK_CHARACTERS: Final = 2_000
_DEFAULTS: Final = {
    "title": "{{title or name or headline or delivery.event}}",
    "summary": "{{summary or description or text}}",
    "link": "{{link or url}}",
    "image": "{{image or picture or thumbnail}}",
    "reason": "rank {{delivery.rank}}, because of {{delivery.interests}}",
}
_LINKS: Final = ("http", "https", "mailto")
_IMAGES: Final = ("http", "https")
# Control characters, halves of surrogate pairs, and marks that turn the direction of what follows.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\uffff]"
)
_NOT_IN_LINKS: Final = re.compile(r"[\s<>\"'`{}|\\^\x00-\x20\x7f-\x9f]")
_MAILBOX: Final = re.compile(r"mailto:[\w.+-]{1,64}@[\w.-]{1,253}", re.ASCII | re.IGNORECASE)


class Card(NamedTuple):
    """A notification as a person sees it: lines of plain text, and links that were checked."""

    sequence: int
    title: str
    summary: str | None
    link: str | None
    image: str | None
    reason: str


@dataclass(frozen=True)
class CardTemplate:
    """The contents of the cards of a service; omitted parts have their defaults.

    >>> template = CardTemplate.load({"link": "https://films.example/{{delivery.event}}"})
    >>> from tidings import Delivery
    >>> delivery = Delivery("ada", "f 7", 0.5, 1, {}, ("s1",), 1, 0, '{"title": "Big Fish"}')
    >>> template.card(delivery)[1:]
    ('Big Fish', None, 'https://films.example/f%207', None, 'rank 0.5, because of s1')
    """

    title: TextTemplate
    summary: TextTemplate
    link: TextTemplate
    image: TextTemplate
    reason: TextTemplate

    @classmethod
    def load(cls, form: object = None) -> "CardTemplate":
        """Read the form of a template: an object of texts."""
        if form is not None and not isinstance(form, Mapping):
            raise InvalidForm("a template must be an object of texts such as title and link")
        texts = fields(form or {}, "the template", (), tuple(_DEFAULTS))
        parts = dict[str, TextTemplate]()
        for name, default in _DEFAULTS.items():
            with prefix_errors(f"{name}: ", InvalidForm, InvalidForm):
                parts[name] = TextTemplate(texts.get(name, default))
        return cls(**parts)

    def to_dict(self) -> dict[str, str]:
        """Return the form."""
        return {name: getattr(self, name).source for name in _DEFAULTS}

    def card(self, delivery: Delivery, interests: Mapping[str, str] | None = None) -> Card:
        """Return the card of a delivery; `interests` has words for the subscriptions that matched.

        Templates see the fields of the content, and those of the `delivery`.
        """
        scope = [delivery.content or {}, {"delivery": _facts(delivery, interests or {})}]
        title = plain_line(self.title.render(scope, most=TITLE_CHARACTERS))
        return Card(
            delivery.sequence,
            title or plain_line(delivery.event, TITLE_CHARACTERS) or "(no title)",
            plain_line(self.summary.render(scope, most=_SUMMARY_CHARACTERS)) or None,
            _address(self.link, scope, _LINKS),
            _address(self.image, scope, _IMAGES),
            plain_line(self.reason.render(scope, most=_REASON_CHARACTERS)),
        )


def plain_line(text: str, most: int | None = None) -> str:
    r"""Return a text as one line, without characters that cannot be seen.

    >>> plain_line("Big\n\x1b[31m Fish\u202e")
    'Big [31m Fish'
    """
    # Half a pair of a longer text is left by a cut; it is dropped as well.
    return " ".join(_UNSEEN.sub("", text).split())[:most].rstrip()


def check_link(text: str, schemes: tuple[str, ...] = _LINKS) -> str | None:
    """Return an address that may be a link, in ASCII; None for any other text."""
    link = text.strip()
    if len(link) > _LINK_CHARACTERS or _NOT_IN_LINKS.search(link):
        return None
    try:
        parts = urlsplit(link)
        host = parts.hostname
        encoded = quote(link, safe="%/:=&?~#+!$,;@()*[].-_")
    except (ValueError, UnicodeError):
        return None
    if parts.scheme == "mailto" and "mailto" in schemes:
        return link if _MAILBOX.fullmatch(link) else None
    return encoded if parts.scheme in schemes and host and "@" not in parts.netloc else None


def _address(template: TextTemplate, scope: list[Any], schemes: tuple[str, ...]) -> str | None:
    """Return an address; values are percent-encoded, except for one at its beginning."""
    return check_link(template.render(scope, lambda value: quote(value, safe="")), schemes)


def _facts(delivery: Delivery, interests: Mapping[str, str]) -> dict[str, Any]:
    matched = list(delivery.matched)
    return {
        "subscriber": delivery.subscriber,
        "event": delivery.event,
        "rank": float(f"{delivery.rank:.3g}"),
        "position": delivery.position,
        "matched": matched,
        "interests": [interests.get(name, name) for name in matched],
        "sequence": delivery.sequence,
        "delivered_at": delivery.delivered_at,
    }
