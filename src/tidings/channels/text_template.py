"""Templates of plain text: values in `{{...}}`, and sections that are shown if there is a value.

This is a subset of Mustache, chosen over a language with expressions: a template can call nothing
and reach nothing but the values that it is given, and its work and its output are bounded.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tidings.errors import InvalidForm, shown

Scope = Sequence[Any]
"""Values from the outermost to the innermost, in which names are looked up."""

_MOST_CHARACTERS: Final = 4_000
_MOST_DEPTH: Final = 8
_MOST_ITEMS: Final = 20
"""Items of a list that are shown."""
_MOST_STEPS: Final = 5_000
"""Tags and texts that are visited for one output, in all its repetitions."""
_TAG: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME: Final = re.compile(r"\.|[^\W\d][\w-]*(?:\.[\w-]+)*")
_SCALARS: Final = (str, int, float)


class _Value(NamedTuple):
    """The first of some names that has a value; `first` if no text comes before it."""

    names: tuple[str, ...]
    first: bool


@dataclass
class _Section:
    """Parts that are shown for each value of a name; or, `inverted`, if it has none."""

    name: str
    inverted: bool
    line: int
    parts: list[Any]


class TextTemplate:
    r"""A template that is ready to be filled in.

    >>> template = TextTemplate("{{title or name}}{{#year}} ({{year}}){{/year}}")
    >>> template.render([{"name": "Big Fish", "year": 2003}])
    'Big Fish (2003)'
    >>> TextTemplate("{{title}}\n{{#year}}")
    Traceback (most recent call last):
    tidings.errors.InvalidForm: line 2: {{#year}} is never closed; write {{/year}} after it
    """

    def __init__(self, source: object) -> None:
        if not isinstance(source, str) or len(source) > _MOST_CHARACTERS:
            raise InvalidForm(
                f"a template is a text of at most {_MOST_CHARACTERS:,} characters, not "
                f"{shown(source)}"
            )
        self.source = source
        self._parts = _parse(source)

    def render(
        self, scope: Scope, encode: Callable[[str], str] | None = None, most: int = 4_000
    ) -> str:
        """Return the template filled in, cut off after `most` characters.

        With `encode`, every value is encoded, except one that the template begins with.
        """
        steps = iter(range(_MOST_STEPS))
        pieces, size = list[str](), 0
        for piece in _filled(self._parts, scope, encode or str, steps):
            pieces.append(piece[: most - size])
            size += len(pieces[-1])
            if size >= most:
                break
        return "".join(pieces)


def _parse(source: str) -> list[Any]:
    """Return the parts of a template: texts, values and sections."""
    top = _Section("", inverted=False, line=0, parts=[])
    open_sections, end = [top], 0
    for tag in _TAG.finditer(source):
        line = source.count("\n", 0, tag.start()) + 1
        _add_text(open_sections[-1], source[end : tag.start()], line)
        _add_tag(open_sections, tag[1].strip(), line, first=tag.start() == 0)
        end = tag.end()
    _add_text(open_sections[-1], source[end:], source.count("\n") + 1)
    if len(open_sections) > 1:
        section = open_sections[-1]
        sign = "^" if section.inverted else "#"
        raise InvalidForm(
            f"line {section.line}: {{{{{sign}{section.name}}}}} is never closed; write "
            f"{{{{/{section.name}}}}} after it"
        )
    return top.parts


def _add_text(section: _Section, text: str, line: int) -> None:
    for braces, what in (("{{", "opened and never closed"), ("}}", "closed and never opened")):
        if braces in text:
            before = text[text.index(braces) :].count("\n")
            raise InvalidForm(f"line {line - before}: a tag is {what}; tags are {{{{name}}}}")
    if text:
        section.parts.append(text)


def _add_tag(open_sections: list[_Section], tag: str, line: int, *, first: bool) -> None:
    sign, name = (tag[:1], tag[1:].strip()) if tag[:1] in ("#", "^", "/", "!") else ("", tag)
    if sign == "!":
        return
    if sign == "/":
        _close(open_sections, name, line)
        return
    names = re.split(r"\s+or\s+", name) if not sign else [name]
    for alternative in names:
        if not _NAME.fullmatch(alternative):
            raise InvalidForm(
                f"line {line}: {{{{{shown(tag)[1:-1]}}}}} is not a tag; expected one of: "
                "{{name}}, {{name.part}}, {{name or other}}, {{#name}}, {{^name}}, {{/name}}, "
                "{{! comment}}"
            )
    if not sign:
        open_sections[-1].parts.append(_Value(tuple(names), first))
        return
    if len(open_sections) > _MOST_DEPTH:
        raise InvalidForm(f"line {line}: sections are nested more than {_MOST_DEPTH} deep")
    section = _Section(name, sign == "^", line, [])
    open_sections[-1].parts.append(section)
    open_sections.append(section)


def _close(open_sections: list[_Section], name: str, line: int) -> None:
    if len(open_sections) == 1 or open_sections[-1].name != name:
        expected = f"{{{{/{open_sections[-1].name}}}}}" if len(open_sections) > 1 else "no end"
        raise InvalidForm(
            f"line {line}: {{{{/{shown(name)[1:-1]}}}}} ends a section that is not open here; "
            f"expected {expected}"
        )
    open_sections.pop()


def _filled(
    parts: Iterable[Any], scope: Scope, encode: Callable[[str], str], steps: Iterator[int]
) -> Iterator[str]:
    for part in parts:
        if next(steps, None) is None:
            return
        if isinstance(part, str):
            yield part
        elif isinstance(part, _Value):
            text = next(filter(None, (_text(_find(scope, name)) for name in part.names)), "")
            yield text if part.first else encode(text)
        else:
            for inner in _scopes(part, scope):
                yield from _filled(part.parts, inner, encode, steps)


def _scopes(section: _Section, scope: Scope) -> list[Scope]:
    """Return the scopes in which the parts of a section are shown, one after the other."""
    value = _find(scope, section.name)
    is_empty = value is None or value is False or value in ("", [], {})
    if section.inverted or is_empty:
        return [scope] if section.inverted == is_empty else []
    items = value[:_MOST_ITEMS] if isinstance(value, list) else [value]
    return [[*scope, item] for item in items]


def _find(scope: Scope, name: str) -> Any:
    """Return the value of a name in the innermost value that has its first part."""
    if name == ".":
        return scope[-1]
    first, *rest = name.split(".")
    value: Any = next((context[first] for context in reversed(scope) if _has(context, first)), None)
    for key in rest:
        value = value[key] if _has(value, key) else None
    return value


def _has(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and key in value


def _text(value: Any) -> str:
    """Return a value as text; an object, and what is missing, has none."""
    if isinstance(value, list):
        return ", ".join(filter(None, (_scalar(item) for item in value[:_MOST_ITEMS])))
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return ""  # Python refuses to print integers of thousands of digits
    if not isinstance(value, _SCALARS):
        return ""
    # Half of a surrogate pair, which JSON may hold, cannot be encoded.
    return str(value).strip().encode(errors="replace").decode()
