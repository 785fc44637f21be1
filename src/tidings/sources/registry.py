"""Message sources by the names of their formats."""

from importlib import import_module
from typing import Any, Final, NamedTuple

from tidings.errors import SourceError
from tidings.formats.event_source import CHANGES, KAFKA, KINESIS, MQTT, NATS, OUTBOX, RSS
from tidings.sources.options import OptionTexts
from tidings.sources.protocol import MessageReader


class Connector(NamedTuple):
    """The module of a source, and the extra of this package that installs its client."""

    module: str
    extra: str

    def load(self, name: str) -> Any:
        """Import the module, whose client is an optional dependency."""
        try:
            return import_module(f"tidings.sources.{self.module}")
        except ImportError as error:
            raise SourceError(
                f"{name} lacks its client ({error}); install it here and on the workers with: "
                f"pip install 'tidings[{self.extra}]'"
            ) from None


CONNECTORS: Final = {
    KAFKA: Connector("kafka", "kafka"),
    KINESIS: Connector("kinesis", "aws"),
    NATS: Connector("jetstream", "nats"),
    MQTT: Connector("mqtt", "mqtt"),
    RSS: Connector("rss", "rss"),
    OUTBOX: Connector("outbox", "postgres"),
    CHANGES: Connector("postgres_changes", "postgres"),
}


def open_reader(name: str, options: OptionTexts, *, streaming: bool | None = None) -> MessageReader:
    """Return the reader of a source, after checking all options; nothing is connected yet.

    Options that only streams or only batches have are refused for the other, if that is known.
    """
    reader: MessageReader = CONNECTORS[name].load(name).open_reader(options, streaming)
    return reader


def check_options(name: str, options: OptionTexts) -> None:
    """Refuse the options of a stream that its reader would refuse; nothing is connected."""
    open_reader(name, options, streaming=True)
