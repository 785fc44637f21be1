"""Which of many are beaten by k others that are not older."""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Bools, Int64s
from tidings.compiled.jit import kernel

OLDEST: Final = np.iinfo(np.int64).min


@kernel
def mark_beaten(groups: Int64s, us: Int64s, k: Int64s, beaten: Bools) -> None:
    """Mark those of whom k before them in their group are not older; O(n k) at most.

    A group stands together, the better ones first; its k is that of its first member.
    """
    newest = np.empty(1, np.int64)
    group, room = -1, 0
    for at in range(len(groups)):
        if at == 0 or groups[at] != group:
            group, room = groups[at], k[at]
            newest = np.full(room, OLDEST, np.int64)  # the k latest so far, the latest first
        beaten[at] = newest[room - 1] != OLDEST and newest[room - 1] >= us[at]
        place = room - 1
        if us[at] > newest[place] or newest[place] == OLDEST:
            while place > 0 and us[at] > newest[place - 1]:
                newest[place] = newest[place - 1]
                place -= 1
            newest[place] = us[at]
