"""The indexes by name."""

from typing import Final

from tidings.index.protocol import Index
from tidings.index.scan import Scan

INDEXES: Final[dict[str, type[Index]]] = {"scan": Scan}
