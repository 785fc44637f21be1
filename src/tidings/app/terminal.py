"""Safe output of untrusted data: no escape sequence in an id or a value reaches a terminal.

Such a sequence could hide lines, rename the window, or write to the clipboard.
"""

import json
import logging
import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_CONTROLS: Final = {
    code: _REPLACEMENT for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}
# JSON escapes the other control characters by itself.
_UNESCAPED: Final = re.compile(r"[\x7f-\x9f]")


def printable(text: str) -> str:
    r"""Return a text that any stream can print, without control characters.

    >>> printable("\x1b[2Jfilms\udcff")
    '�[2Jfilms\\udcff'
    """
    # File names need not be valid UTF-8.
    return text.encode(errors="backslashreplace").decode().translate(_CONTROLS)


def json_line(form: object) -> str:
    r"""Return a form as one line of JSON that any stream can print.

    >>> json_line({"id": "é\x9b2J"})
    '{"id": "é\\u009b2J"}'
    """
    text = json.dumps(form, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class SafeFormatter(logging.Formatter):
    """Formats what is logged without control characters: it may repeat what a server answered."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class SafeConsole(Console):
    """A console that prints texts without their control characters."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            is_text = not segment.control
            yield Segment(printable(segment.text), segment.style) if is_text else segment
