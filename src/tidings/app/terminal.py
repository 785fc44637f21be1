"""Safe output of untrusted data, and the log of the service on standard error.

No escape sequence in an id or a value reaches a terminal. Such a sequence could hide lines, rename
the window, or write to the clipboard.
"""

import json
import logging
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, Literal

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
    """A console that prints texts as they are, but without their control characters.

    What looks like markup, such as [bold] or :bell:, may be an id or a value: it is text as well.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            is_text = not segment.control
            yield Segment(printable(segment.text), segment.style) if is_text else segment


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, the level, the logger and the message of a record."""
        form = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            form["traceback"] = self.formatException(record.exc_info)
        return json.dumps(form)


def start_logging(kind: Literal["text", "json"]) -> None:
    """Write the log of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    text = SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if kind == "json" else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # py4j logs every call between Python and Java, and the exception that stops a query.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
