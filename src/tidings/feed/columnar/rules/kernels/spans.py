"""Periods and quiet hours of a calendar: sorted arrays that the caller completes on demand."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.rules.kernels.layout import (
    LATEST_HIGH,
    LATEST_LOW,
    LATEST_SPAN,
    CalendarSpans,
)


@inlined
def is_known(spans: CalendarSpans, place: int, us: int) -> bool:
    """Return whether the arrays are complete around an instant."""
    return spans.known[place, 0] <= us < spans.known[place, 1]


@inlined
def last_span(spans: CalendarSpans, place: int, us: int) -> int:
    """Return the last span that begins by an instant; -1 if there is none."""
    low, high = spans.first[place], spans.first[place + 1]
    first = low
    while low < high:
        middle = (low + high) >> 1
        if spans.start[middle] <= us:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > first else -1


@inlined
def span_at(spans: CalendarSpans, place: int, us: int) -> int:
    """Return the span that contains an instant, which must be known; -1 if there is none."""
    latest = spans.latest
    if us < latest[place, LATEST_LOW] or us >= latest[place, LATEST_HIGH]:
        nth, low, high = last_span(spans, place, us), spans.known[place, 0], spans.known[place, 1]
        following = nth + 1 if nth >= 0 else spans.first[place]
        if nth >= 0 and us < spans.end[nth]:
            low, high = spans.start[nth], spans.end[nth]
        else:
            low = max(low, spans.end[nth]) if nth >= 0 else low
            if following < spans.first[place + 1]:
                high = min(high, spans.start[following])
            nth = -1
        # Never beyond what is known: a question from outside has to reach the caller.
        latest[place, LATEST_SPAN] = nth
        latest[place, LATEST_LOW], latest[place, LATEST_HIGH] = low, high
    return latest[place, LATEST_SPAN]
