"""The first messages of a source, for a look at what it holds."""

from collections.abc import Iterator
from contextlib import closing

from tidings.formats.messages import MessageSource
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event
from tidings.sources.protocol import EARLIEST
from tidings.sources.registry import open_reader
from tidings.sources.spooled import SpooledReader


def sample_messages(
    source: MessageSource, limits: Limits = TRUSTED, most: int = 1_000
) -> Iterator[Event | BadRecord]:
    """Yield the events of the first messages, after checking all options.

    There are none of a source that cannot be read again, since a look would change it.
    """
    with closing(open_reader(source.format, source.options, streaming=True)) as reader:
        if isinstance(reader, SpooledReader):
            return
        start = reader.starting(EARLIEST)
        for span in reader.spans(start, reader.advance(start, reader.latest(), most)):
            for batch in reader.read(span):
                yield from source.form.events(batch, limits)
