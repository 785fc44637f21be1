"""Parameters that several paths share."""

from typing import Annotated

from fastapi import Query

Limit = Annotated[int, Query(ge=1, le=1_000, description="The maximum number to return.")]
