"""Weights of partial hits, against sums over groups."""

from math import fsum

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.exact_sum import PARTS
from tidings.index.access.kernels.partial_match import Hits
from tidings.model.values import rounded
from tidings.rank.bulk.kernels.relaxed import PART, Spans, weigh_hits

WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.7, 2.0])
GROUPS = st.lists(st.lists(WEIGHTS, min_size=1, max_size=4), min_size=1, max_size=3)
SUBSCRIPTIONS = st.lists(st.none() | GROUPS, min_size=1, max_size=5)


@given(SUBSCRIPTIONS, st.randoms(use_true_random=False), st.booleans())
def test_the_heaviest_group_counts(subscriptions, random, uncertain):
    parts = [[] if groups is None else _parts(groups) for groups in subscriptions]
    sizes = np.array([len(own) for own in parts])
    firsts = np.where([groups is None for groups in subscriptions], -1, np.cumsum(sizes) - sizes)
    values = np.array([part for own in parts for part in own], PART)
    held = [
        [number for number in range(max(1, len(own))) if not own or random.random() < 0.6]
        for own in parts
    ]
    hits = Hits(
        np.array([0, len(parts)]),
        np.arange(len(parts), dtype=np.int32),
        np.cumsum([0, *map(len, held)]),
        np.array([number for own in held for number in own], np.int32),
    )
    chances = [random.choice([0.25, 0.5, 1.0]) for _ in hits.parts]
    probabilities = np.array(chances) if uncertain else np.empty(0)
    out = np.empty(len(parts))
    weigh_hits(Spans(firsts.astype(np.int64), values), hits, probabilities, np.empty(PARTS), out)
    chance = iter(chances if uncertain else [1.0] * len(chances))
    weighed = [
        [(own[n] if own else None, next(chance)) for n in some]
        for own, some in zip(parts, held, strict=True)
    ]
    assert out.tolist() == [_heaviest(some) for some in weighed]


def _parts(groups):
    return [(weight, group, 0) for group, own in enumerate(groups) for weight in own]


def _heaviest(weighed):
    sums: dict[int, list[float]] = {}
    for part, chance in weighed:
        if part is not None:
            sums.setdefault(part[1], []).append(part[0] * chance)
    return max((rounded(fsum(own)) for own in sums.values()), default=0.0)
