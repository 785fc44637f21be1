"""Registry of the windows."""

from typing import Final

from tidings.model import named_parts
from tidings.window.continuous import Continuous
from tidings.window.history import History
from tidings.window.jumping import Jumping
from tidings.window.periodic import Periodic
from tidings.window.protocol import WindowPart
from tidings.window.sliding import Sliding

WINDOWS: Final[dict[str, type[WindowPart]]] = named_parts.registry(
    {
        "continuous": Continuous,
        "periodic": Periodic,
        "sliding": Sliding,
        "jumping": Jumping,
        "history": History,
    }
)
