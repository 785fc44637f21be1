"""A timeline as a page that stands alone."""

from xml.etree.ElementTree import Element

from tidings.formats.markup import styled_page, tag
from tidings.lab.report import lab_header, report_css, with_times
from tidings.lab.timeline import CHOSEN_AGAIN, Timeline, TimelineEvent, TimelineWindow


def timeline_page(timeline: Timeline) -> str:
    """Return the page: a window after the other, the chosen first."""
    title = f"The windows of {timeline.subscriber}"
    policy = tag("p", f"Policy: {timeline.policy}.", class_="soft")
    header = lab_header(title, f"{timeline.words}.", policy)
    windows = tag("ol", map(_window, timeline.windows), class_="windows")
    return styled_page(title, report_css(), tag("main", header, windows))


def _window(window: TimelineWindow) -> Element:
    events = (
        *(
            _event(event, "again" if event.fate == CHOSEN_AGAIN else "chosen")
            for event in window.chosen
        ),
        *(_event(event, "passed") for event in window.passed),
    )
    return tag(
        "li",
        tag("b", tag("time", window.at)),
        tag("p", with_times(window.words), class_="soft"),
        tag("ul", events),
        class_="busy" if window.chosen else "idle",
    )


def _event(event: TimelineEvent, kind: str) -> Element:
    name, fate = event.title or event.event, f", rank {event.rank:g}: {event.fate}"
    return tag("li", tag("b", name), with_times(fate), class_=kind)
