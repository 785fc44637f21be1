"""Parameters that several paths have."""

from typing import Annotated

from fastapi import Path, Query

_ID_BYTES = 1_000

RecordId = Annotated[str, Path(min_length=1, max_length=_ID_BYTES)]
SubscriberId = Annotated[str, Path(min_length=1, max_length=_ID_BYTES)]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many to return at most.")]
