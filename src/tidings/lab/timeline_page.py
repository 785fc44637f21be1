"""A timeline as a page that stands alone."""

from xml.etree.ElementTree import Element

from tidings.formats.markup import page, tag
from tidings.lab.report import report_css
from tidings.lab.timeline import Timeline, TimelineEvent, TimelineWindow


def timeline_page(timeline: Timeline) -> str:
    """Return the page: a window after the other, the chosen first."""
    title = f"The windows of {timeline.subscriber}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", report_css()),
    )
    lead = (
        f"{timeline.start} to {timeline.end}: {timeline.matches:,} matches, "
        f"{timeline.delivered:,} delivered, {len(timeline.windows):,} windows."
    )
    header = tag(
        "header",
        tag("p", "Tidings lab", class_="overline"),
        tag("h1", title),
        tag("p", lead, class_="lead"),
        tag("p", f"Policy: {timeline.policy}.", class_="soft"),
    )
    windows = tag("ol", map(_window, timeline.windows), class_="windows")
    return page(tag("html", head, tag("body", tag("main", header, windows)), lang="en"))


def _window(window: TimelineWindow) -> Element:
    span = f"{window.candidates:,} candidates from {window.start} to {window.end}"
    events = (
        *(_event(event, "chosen") for event in window.chosen),
        *(_event(event, "passed") for event in window.passed),
    )
    return tag(
        "li",
        tag("b", window.at),
        tag("p", span, class_="soft"),
        tag("ul", events),
        class_="busy" if window.chosen else "idle",
    )


def _event(event: TimelineEvent, kind: str) -> Element:
    name = event.title or event.event
    return tag("li", tag("b", name), f", rank {event.rank:g}: {event.fate}", class_=kind)
