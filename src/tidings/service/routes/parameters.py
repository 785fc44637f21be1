"""Parameters that several paths have."""

from typing import Annotated

from fastapi import Query

Limit = Annotated[int, Query(ge=1, le=1_000, description="How many to return at most.")]
