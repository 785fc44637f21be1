"""The subscribers of the demo: ten, each of which shows a different idea."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidings.diversify.covers import MaxDivRel
from tidings.diversify.distance import Overlap
from tidings.diversify.greedy import DivRank
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.engine.engine import Engine
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber
from tidings.rules.different import Different
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota
from tidings.score.decay import Exponential
from tidings.score.exact import Exact
from tidings.score.graph import Graph
from tidings.score.relaxed import Relaxed
from tidings.window.continuous import Continuous
from tidings.window.history import History
from tidings.window.jumping import Jumping
from tidings.window.periodic import Periodic
from tidings.window.sliding import Sliding

# Films are compared by their genres and their decade only.
GENRE_AND_DECADE: Final = Overlap(
    dict.fromkeys(("title", "year", "length", "rating", "votes", "mpaa", "budget", "director"), 0.0)
)
_SIX_HOURS_S: Final = 6 * 60 * 60
_NEW_YORK: Final = "America/New_York"


@dataclass(frozen=True)
class DemoSubscriber:
    """A subscriber with its subscriptions, and a description of its taste and its policy."""

    subscriber: Subscriber
    subscriptions: tuple[Subscription, ...]
    likes: str
    gets: str

    @property
    def name(self) -> str:
        """The id of the subscriber."""
        return self.subscriber.id

    @property
    def k(self) -> int:
        """The length of its list."""
        return self.subscriber.policy.k

    @property
    def asks_for_variety(self) -> bool:
        """Whether its policy has a diversifier."""
        return self.subscriber.policy.diversify.name != "none"


def demo_subscribers() -> list[DemoSubscriber]:
    """Return all subscribers; those of the papers are defined exactly as there."""
    return [
        _addison(),
        _drama("addison-burton", burton=0.9),
        _drama("carson", burton=0.5),
        _dana(),
        _bob(),
        _erin(),
        _frank(),
        _club(),
        _grace(),
        _henry(),
    ]


def plain_engine(subscribers: Sequence[DemoSubscriber], remember: int = 0) -> Engine:
    """Return an engine without kernels to compile; it can explain the last `remember` events."""
    engine = Engine(remember=remember, index="scan", feeds="plain")
    for owner in subscribers:
        engine.subscribe(owner.subscriber)
        engine.add_many(owner.subscriptions)
    return engine


def _addison() -> DemoSubscriber:
    """Return Addison of PREF 5.1, who gets films that differ in genre and decade."""
    ranks = {"comedy": 0.9, "romance": 0.9, "drama": 0.8, "horror": 0.6}
    wants = {genre: f"genre = '{genre}'" for genre in ranks}
    diverse = DivRank(0.5, GENRE_AND_DECADE)
    return DemoSubscriber(
        Subscriber("addison", Policy(k=2, window=Periodic("30m"), diversify=diverse)),
        tuple(_subscription("addison", name, wants[name], prefrank=ranks[name]) for name in ranks),
        likes="comedy and romance (.9), drama (.8), horror (.6)",
        gets="top 2 of each half hour, diverse",
    )


def _drama(name: str, burton: float) -> DemoSubscriber:
    """Return Addison or Carson of PREF 3.2, who rank the dramas of one director differently.

    Here they also like romance, but less; otherwise nearly all their matches would rank alike.
    """
    taste = "best of all (.9)" if burton > 0.7 else "less so (.5)"
    by_burton = "genre = 'drama' and director = 'T. Burton'"
    return DemoSubscriber(
        Subscriber(name, Policy(k=3, window=Periodic("6h"))),
        (
            _subscription(name, "drama", "genre = 'drama'", prefrank=0.7),
            _subscription(name, "burton", by_burton, prefrank=burton),
            _subscription(name, "romance", "genre = 'romance'", prefrank=0.4),
        ),
        likes=f"drama (.7), {taste} by T. Burton, romance (.4)",
        gets="top 3 of each 6 hours",
    )


def _dana() -> DemoSubscriber:
    """Return a subscriber with qualitative preferences only (PREF Def. 2)."""
    name, diverse = "dana", MaxDivRel(distance=GENRE_AND_DECADE)
    return DemoSubscriber(
        Subscriber(
            name,
            Policy(k=3, window=Jumping(100, step=50), diversify=diverse),
            prefers=[("dana/acclaimed", "dana/short"), ("dana/short", "dana/any")],
        ),
        (
            _subscription(name, "acclaimed", "genre = 'documentary' and rating >= 8"),
            _subscription(name, "short", "genre = 'documentary' and genre = 'short'"),
            _subscription(name, "any", "genre = 'documentary'"),
        ),
        likes="documentaries: acclaimed over short over any",
        gets="3 of the last 100, every 50 matches, diverse",
    )


def _bob() -> DemoSubscriber:
    """Return a preference graph (TKS 4.2.1), which rewards films with several related traits."""
    name = "bob"
    animated = [["genre = 'animation'", 0.8], ["rating >= 8", 0.6]]
    expensive = [["budget >= 50000000", 0.9], ["mpaa = 'PG'", 0.5]]
    return DemoSubscriber(
        Subscriber(name, Policy(k=3, scorer=Graph(lambda_=0.5), window=Sliding(100))),
        (
            Subscription("bob/animated", name, any=animated),
            Subscription("bob/expensive", name, any=expensive),
        ),
        likes="animated + acclaimed, expensive + PG",
        gets="top 3 of the last 100",
    )


def _erin() -> DemoSubscriber:
    """Return relaxed matching (RPS 2) with scores that decay (TKS 4.2.2)."""
    name = "erin"
    traits = [["votes >= 10000", 0.5], ["rating >= 8.5", 0.3], ["genre = 'action'", 0.2]]
    half_life = Exponential(rate=math.log(2) / _SIX_HOURS_S)
    return DemoSubscriber(
        Subscriber(name, Policy(k=5, scorer=Relaxed(), decay=half_life, window=Continuous())),
        (Subscription("erin/talk", name, any=traits),),
        likes="known (.5) + praised (.3) + action (.2)",
        gets="at once if among the top 5, fading by half in 6 hours",
    )


def _frank() -> DemoSubscriber:
    """Return history-based filtering (PREF Def. 14)."""
    name = "frank"
    diverse = DivRank(0.5, GENRE_AND_DECADE)
    policy = Policy(k=4, window=History(200, strict=True), diversify=diverse)
    return DemoSubscriber(
        Subscriber(name, policy),
        (
            _subscription(name, "romcom", "genre = 'romance' and genre = 'comedy'", prefrank=0.9),
            _subscription(name, "romance", "genre = 'romance'", prefrank=0.5),
            _subscription(name, "silent", "year < 1930", prefrank=0.3),
        ),
        likes="romantic comedy (.9), romance (.5), silents (.3)",
        gets="at once if it betters the last 4, diverse",
    )


def _club() -> DemoSubscriber:
    """Return exact matching (RPS 2), diversified by LSH (TKS 5.2)."""
    name, diverse = "film-club", MaxDivRelLsh(tables=20, rows=1)
    return DemoSubscriber(
        Subscriber(name, Policy(k=4, scorer=Exact(), window=Periodic("12h"), diversify=diverse)),
        (
            _subscription(name, "classic", "rating >= 8 and votes >= 1000", score=1),
            _subscription(name, "silent", "year < 1930 and length >= 60", score=0.6),
            _subscription(name, "cartoon", "genre = 'animation' and year < 1960", score=0.4),
        ),
        likes="classics (1), silents (.6), old cartoons (.4)",
        gets="top 4 of each 12 hours, diverse",
    )


def _grace() -> DemoSubscriber:
    """Return a subscriber who wants to be disturbed rarely, and not at night (semantics §6b)."""
    name, athens = "grace", "Europe/Athens"
    traits = [
        ["genre = 'comedy'", 0.4],
        ["rating >= 8", 0.3],
        ["votes >= 1000", 0.2],
        ["year >= 1995", 0.1],
    ]
    policy = Policy(
        k=5,
        scorer=Relaxed(),
        window=Continuous(expires=40),
        rules=[Quota(5, zone=athens), Quiet("22:00", "07:00", athens, urgent=1.0)],
    )
    return DemoSubscriber(
        Subscriber(name, policy),
        (Subscription("grace/comedy", name, any=traits),),
        likes="comedy (.4) + praised (.3) + known (.2) + new (.1)",
        gets="top 5 of a day, quiet from 22:00 to 07:00 in Athens",
    )


def _henry() -> DemoSubscriber:
    """Return a digest at a local time, without what is like the last ones (semantics §6b)."""
    name, diverse = "henry", DivRank(0.5, GENRE_AND_DECADE)
    policy = Policy(
        k=4,
        window=Periodic(at="08:00", days=("mon", "tue", "wed", "thu", "fri"), zone=_NEW_YORK),
        diversify=diverse,
        rules=[Different(0.5, "7d", GENRE_AND_DECADE)],
    )
    return DemoSubscriber(
        Subscriber(name, policy),
        (
            _subscription(name, "action", "genre = 'action' and rating >= 7", prefrank=0.9),
            _subscription(name, "drama", "genre = 'drama' and rating >= 8", prefrank=0.7),
            _subscription(name, "short", "genre = 'short' and rating >= 8", prefrank=0.5),
        ),
        likes="good action (.9), better drama (.7), shorts (.5)",
        gets="top 4 on weekdays at 08:00 in New York, none alike",
    )


def _subscription(
    owner: str, name: str, where: str, prefrank: float | None = None, score: float | None = None
) -> Subscription:
    return Subscription(f"{owner}/{name}", owner, where, prefrank=prefrank, score=score)
