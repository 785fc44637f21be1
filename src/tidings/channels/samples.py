"""Sample deliveries, which show what a message would look like."""

from pathlib import Path
from typing import Any, Final

from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.json_text import read_json, read_lines
from tidings.model import validate
from tidings.model.content import read_content
from tidings.model.records import Delivery

SAMPLE: Final = {"title": "A title", "summary": "A summary.", "url": "https://example.org/"}
_LINE_BYTES: Final = 1_000_000


def sample_delivery(content: object = None, event: str = "sample", sequence: int = 1) -> Delivery:
    """Return a delivery of some content."""
    text = read_content("a sample", SAMPLE if content is None else content, InvalidForm).text
    return Delivery("you", event, 0.9, 1, {}, ("an-interest",), sequence, 0, text)


def sample_deliveries(events: Path | None, limit: int) -> list[Delivery]:
    """Return deliveries of the first events of a file: JSON Lines with an id and `content`.

    An event without content is shown by its attributes.
    """
    if events is None:
        return [sample_delivery()]
    deliveries = list[Delivery]()
    with (
        prefix_errors(f"{events}: ", raised=InvalidForm),
        validate.regular_file(events).open("rb") as file,
    ):
        for number, line, whole in read_lines(file, _LINE_BYTES):
            if len(deliveries) == limit:
                break
            with prefix_errors(f"line {number}: ", raised=InvalidForm):
                form = read_json(line) if whole else None
                deliveries.append(_sample(form, len(deliveries) + 1))
        if not deliveries:
            raise InvalidForm("there is no event to show")
    return deliveries


def _sample(form: Any, sequence: int) -> Delivery:
    event = validate.mapping("an event must be an object", form, InvalidForm)
    name = validate.whole_name(event.get("id", f"event-{sequence}"))
    content = event.get("content") or event.get("attributes") or event
    return sample_delivery(content, validate.name("`id`", name, InvalidForm), sequence)
