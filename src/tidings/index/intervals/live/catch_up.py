"""A rebuilt live index before it is served: it catches up with what changed meanwhile."""

from dataclasses import dataclass

import numpy as np

from tidings.index.intervals.kernels.delta_grid import LIVING, Grid, Young
from tidings.index.intervals.kernels.live import live_add_many, live_kill_many
from tidings.index.intervals.live.base_run import Built, Entries, built
from tidings.index.intervals.live.delta_grid import empty_grid, empty_young, living_in, with_room
from tidings.index.intervals.live.reader import State


@dataclass(eq=False)
class Fresh:
    """A run and a grid that nobody reads yet; all their stamps are of version 0."""

    main: Built
    grid: Grid
    young: Young

    @property
    def changes(self) -> int:
        """How much has changed already since the run was built."""
        return self.main.dead + int(self.grid[9][LIVING])

    def kill(self, ids: list[int]) -> None:
        """Stamp those of the ids that are there."""
        wanted = np.array(ids, np.int64)
        _, dead = live_kill_many(self.main.old, self.grid, self.young, wanted, 0, True)
        self.main.dead += dead

    def add(self, entries: Entries) -> None:
        """Add entries to the grid."""
        new = (np.stack([entries.low, entries.high, scores_of(entries)]), entries.ids)
        done = 0
        while (done := live_add_many(self.grid, self.young, new, 0, done)) < len(entries):
            self.grid, self.young = with_room(self.grid, self.young)

    def catch_up(self, killed: list[int], state: State, since: int) -> None:
        """Do what was done from version `since` on: first the deaths, then the births."""
        self.kill(killed)
        self.add(living_in(state.grid, state.version, since))


def fresh_with(main: Built) -> Fresh:
    """Give a run with an empty grid that fits it."""
    return Fresh(main, empty_grid(main.cuts), empty_young())


def rebuilt(frozen: State) -> Built:
    """Build a run of all that is there in a state."""
    parts = (frozen.main.living(frozen.version), living_in(frozen.grid, frozen.version))
    columns = zip(*(vars(each).values() for each in parts), strict=True)
    return built(Entries(*(np.concatenate(each) for each in columns)))


def scores_of(entries: Entries) -> np.ndarray:
    """Give the scores that the keys were made of."""
    return (-entries.keys).view(np.float64)
