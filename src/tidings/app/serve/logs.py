"""Logs of the service on standard error: lines for people, or JSON for programs."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from tidings.app.terminal import SafeFormatter


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
