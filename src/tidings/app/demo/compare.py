"""A fair comparison: each list that Tidings delivered, and as many of the films that came first.

    films that match    . . o . . . . o . . | . . o . o . . . .
    Tidings                 ^         ^     |     ^   ^           k films, complete at the bar
    first come          ^ ^                 | ^ ^                 the first k since the last bar

A reader of only k notifications of plain publish/subscribe reads the first ones. Both lists are
measured at the same moment, by the same scores and the same distance.
"""

from bisect import bisect_right
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from tidings.app.demo.subscribers import GENRE_AND_DECADE, DemoSubscriber
from tidings.diversify import diversity
from tidings.model.records import Event
from tidings.model.values import SECOND_US
from tidings.rank.matcher import Matcher


class ScoredFilm(NamedTuple):
    """A film that matches, and its score for a subscriber."""

    film: Event
    score: float


class ListQuality(NamedTuple):
    """The quality of a list: mean score, mean distance between its films, and mean age."""

    score: float
    variety: float
    age_s: float


class ListPair(NamedTuple):
    """A delivered list, and as many of the films that came first."""

    first_come: ListQuality
    tidings: ListQuality


class FigurePair(NamedTuple):
    """A figure of the films that came first, and of those that Tidings delivered."""

    first_come: float
    tidings: float

    def to_dict(self) -> dict[str, float]:
        """Return the JSON form."""
        return {"first_come": round(self.first_come, 4), "tidings": round(self.tidings, 4)}


class Figures(NamedTuple):
    """The means over all lists of a subscriber.

    `rank` is the share of the best score on any of them, so that scorers of different scales can
    be compared.
    """

    rank: FigurePair
    variety: FigurePair
    age_s: FigurePair

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: comparison.to_dict() for name, comparison in self._asdict().items()}


class SubscriberMatches:
    """The matches of one subscriber among films in order of publication, found when needed."""

    def __init__(self, owner: DemoSubscriber, films: Sequence[Event]) -> None:
        self._matcher = Matcher([owner.subscriber], owner.subscriptions)
        self._films = films

    def between(self, start: int, end: int, most: int | None = None) -> list[ScoredFilm]:
        """Return the first matches, at most `most`, among the films at positions [start, end)."""
        matches: list[ScoredFilm] = []
        for film in self._films[start:end]:
            if len(matches) == most:
                break
            matches += [ScoredFilm(film, match.score) for match in self._matcher.matches(film)]
        return matches

    def score(self, film: Event) -> float:
        """Return the score of a film that matches."""
        return self._matcher.matches(film)[0].score

    def pair(self, delivered: Sequence[Event], after_us: int, at_us: int) -> ListPair | None:
        """Compare a list that was complete at `at_us` with the first films after `after_us`.

        Return None if fewer films came, since lists of different lengths are not comparable.
        """
        start, end = (
            bisect_right(self._films, us, key=lambda film: film.published_us)
            for us in (after_us, at_us)
        )
        first = self.between(start, end, most=len(delivered))
        if len(first) < len(delivered):
            return None
        chosen = [ScoredFilm(film, self.score(film)) for film in delivered]
        return ListPair(measure(first, at_us), measure(chosen, at_us))


def measure(films: Sequence[ScoredFilm], at_us: int) -> ListQuality:
    """Return the quality of a list that is not empty, as it is at `at_us`."""
    return ListQuality(
        fmean(film.score for film in films),
        diversity([scored.film for scored in films], GENRE_AND_DECADE),
        fmean((at_us - scored.film.published_us) / SECOND_US for scored in films),
    )


def figures(lists: Sequence[ListPair]) -> Figures | None:
    """Return the means over all lists; None without any."""
    if not lists:
        return None
    best = max(quality.score for pair in lists for quality in pair) or 1.0
    first, chosen = (
        ListQuality(*map(fmean, zip(*side, strict=True))) for side in zip(*lists, strict=True)
    )
    return Figures(
        FigurePair(first.score / best, chosen.score / best),
        FigurePair(first.variety, chosen.variety),
        FigurePair(first.age_s, chosen.age_s),
    )
