"""Tidings: ranked publish/subscribe.

Each subscriber gets the k best events that are fresh and different from each other; and for one
event, `target` returns the k subscriptions that fit best.
"""

from tidings.client import AsyncClient, Client
from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.greedy import DivRank, MaxAvg, MaxMin, MaxSum
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.none import NoDiversity
from tidings.diversify.optimal import Optimal
from tidings.engine.engine import Engine
from tidings.engine.explain import Explanation, Placement
from tidings.errors import (
    InvalidCondition,
    InvalidEvent,
    InvalidForm,
    InvalidPolicy,
    InvalidSubscription,
    InvalidValue,
    ServiceError,
    TidingsError,
)
from tidings.formats.json_forms import (
    loads_event,
    loads_policy,
    loads_subscriber,
    loads_subscription,
)
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.diagnosis import Diagnosis
from tidings.model.limits import Limits
from tidings.model.records import Delivery, Event, Match, Subscription, Weighted, publication_order
from tidings.model.values import Range
from tidings.policy import Policy, Subscriber
from tidings.rules.different import Different
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota
from tidings.score.decay import Exponential, Logarithmic, NoDecay, Polynomial
from tidings.score.exact import Exact
from tidings.score.graph import Graph
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed
from tidings.window.continuous import Continuous
from tidings.window.history import History
from tidings.window.jumping import Jumping
from tidings.window.periodic import Periodic
from tidings.window.sliding import Sliding

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "BadRecord",
    "Client",
    "Continuous",
    "DeadLetter",
    "Delivery",
    "Diagnosis",
    "Different",
    "Disc",
    "DivRank",
    "Engine",
    "Event",
    "Exact",
    "Explanation",
    "Exponential",
    "Graph",
    "History",
    "InvalidCondition",
    "InvalidEvent",
    "InvalidForm",
    "InvalidPolicy",
    "InvalidSubscription",
    "InvalidValue",
    "Jaccard",
    "Jumping",
    "Limits",
    "Logarithmic",
    "Match",
    "MaxAvg",
    "MaxDivRel",
    "MaxDivRelLsh",
    "MaxMin",
    "MaxSum",
    "NoDecay",
    "NoDiversity",
    "Optimal",
    "Overlap",
    "Periodic",
    "Placement",
    "Policy",
    "Polynomial",
    "Preference",
    "Quiet",
    "Quota",
    "Range",
    "Relaxed",
    "ServiceError",
    "Sliding",
    "Subscriber",
    "Subscription",
    "TidingsError",
    "Weighted",
    "loads_event",
    "loads_policy",
    "loads_subscriber",
    "loads_subscription",
    "publication_order",
]
