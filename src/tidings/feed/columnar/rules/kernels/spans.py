"""Periods and quiet hours of a calendar: sorted arrays that the caller completes on demand."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.rules.kernels.layout import CalendarSpans


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
    """Return the span that contains an instant; -1 if there is none."""
    nth = last_span(spans, place, us)
    return nth if nth >= 0 and us < spans.end[nth] else -1
