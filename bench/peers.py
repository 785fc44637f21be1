"""Alternatives that one might use: each answers `top` and `top_many`; missing ones are left out."""

import heapq
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from postgres import Postgres

SCALE = 2**28  # superintervals takes 32-bit integers: cells of 4e-9


def whole(numbers: Any) -> Any:
    """Return coordinates as positive integers, which ncls and superintervals need."""
    return np.floor((np.asarray(numbers) + 2) * SCALE).astype(np.int64)


class NumpyBruteForce:
    """A mask over all rows, argpartition, and a sort of k. Wrong if the k-th score is tied."""

    def __init__(self, low: Any, high: Any, score: Any) -> None:
        self.low, self.high, self.score = low, high, score
        self.nbytes = low.nbytes + high.nbytes + score.nbytes

    def top(self, q: float, k: int) -> Any:
        stabbed = np.flatnonzero((self.low <= q) & (q <= self.high))
        scores = -self.score[stabbed]
        if k < len(stabbed):
            best = np.argpartition(scores, k)[:k]
            stabbed, scores = stabbed[best], scores[best]
        return stabbed[np.lexsort((stabbed, scores))]

    def top_many(self, qs: Any, k: int) -> Any:
        return [self.top(q, k) for q in qs]


class SuperIntervals(NumpyBruteForce):
    """All intervals that q stabs, as ranks, then the k smallest of them."""

    def __init__(self, low: Any, high: Any, score: Any) -> None:
        order = np.argsort(-score, kind="stable")
        ends = (whole(each[order]).astype(np.int32) for each in (low, high))
        found = import_module("superintervals").IntervalMap.from_arrays(*ends, range(len(low)))
        self.map, self.ids, self.nbytes = found, order, 0

    def top(self, q: float, k: int) -> Any:
        at = int(whole(q))
        return self.ids[heapq.nsmallest(k, self.map.search_values(at, at))]


class Ncls(NumpyBruteForce):
    """All intervals that q stabs, as ranks, then the k smallest of them."""

    def __init__(self, low: Any, high: Any, score: Any) -> None:
        order = np.argsort(-score, kind="stable")
        made = import_module("ncls").NCLS64
        self.list = made(whole(low[order]), whole(high[order]) + 1, np.arange(len(order)))
        self.ids, self.nbytes, self.none = order, 0, np.zeros(1, np.int64)

    def top(self, q: float, k: int) -> Any:
        at = whole([q])
        ranks = self.list.all_overlaps_both(at, at + 1, self.none)[1]
        best = np.partition(ranks, k)[:k] if k < len(ranks) else ranks
        return self.ids[np.sort(best)]


class IntervalTreePeer(NumpyBruteForce):
    """All intervals that q stabs, as ranks, then the k smallest of them; pure Python."""

    def __init__(self, low: Any, high: Any, score: Any) -> None:
        order = np.argsort(-score, kind="stable")
        after = np.nextafter(high[order], np.inf)
        rows = zip(low[order].tolist(), after.tolist(), range(len(order)), strict=True)
        self.tree = import_module("intervaltree").IntervalTree.from_tuples(rows)
        self.ids, self.nbytes = order, 0

    def top(self, q: float, k: int) -> Any:
        return self.ids[heapq.nsmallest(k, (each.data for each in self.tree.at(q)))]


PEERS: dict[str, Callable[..., Any]] = {
    "numpy": NumpyBruteForce,
    "superintervals": SuperIntervals,
    "ncls": Ncls,
    "intervaltree": IntervalTreePeer,
    "postgres-gist": partial(Postgres, way="gist"),
    "postgres-btree": partial(Postgres, way="btree"),
}

LARGEST = {"intervaltree": 100_000}
"""Above this size, a peer takes minutes to build."""
