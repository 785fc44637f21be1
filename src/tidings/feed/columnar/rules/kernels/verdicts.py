"""Verdicts: rows of a buffer, one for each event that a rule holds, releases or drops."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    DETAIL,
    EVENT,
    LEFT,
    NONE,
    OTHER,
    REASON,
    SUBSCRIBER,
    UNTIL,
    VERDICT_AT,
    VERDICT_EVENT,
    VERDICT_PLACE,
    VERDICT_SUBSCRIBER,
    VERDICTS,
    RuleArrays,
    RuleOutput,
)


@inlined
def judge(arrays: RuleArrays, output: RuleOutput, place: int, cell: int, reason: int) -> int:
    """Write the verdict on the event of a cell, at the time of the cell; return its index."""
    # Rows are not cleared between runs, so each column is written; callers fill in what they know.
    verdicts, index = output.verdicts, output.progress[VERDICTS]
    verdicts[index, VERDICT_SUBSCRIBER] = output.progress[SUBSCRIBER]
    verdicts[index, VERDICT_PLACE] = place
    verdicts[index, REASON] = reason
    verdicts[index, VERDICT_EVENT] = arrays.held.cell[cell, EVENT]
    verdicts[index, VERDICT_AT] = arrays.held.cell[cell, AT]
    verdicts[index, UNTIL], verdicts[index, OTHER] = NONE, NONE
    verdicts[index, DETAIL], verdicts[index, LEFT], output.figures[index] = NONE, 0, 0.0
    output.progress[VERDICTS] = index + 1
    return index
