"""Greedy growth in plain Python: the best pair, then one candidate at a time."""

import math
import operator
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify import cover as definition
from tests.diversify.cover import ALPHAS, Gain
from tests.diversify.small import (
    DISTANCES,
    SIGMAS,
    SQUARE_TIES,
    Between,
    by_rank,
    candidate,
    ids,
    mean,
    names,
    square,
    windows,
)
from tests.diversify.test_covers import most_neighbours, relevance_over_crowd
from tests.diversify.test_dispersion import choice as dispersed
from tests.diversify.test_divrank import FIGURE_5
from tests.diversify.test_divrank import choice as diverse
from tests.diversify.test_maxdivrel_lsh import TABLE_5_9

from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.greedy import DivRank, MaxAvg, MaxMin, MaxSum
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.optimal import Optimal
from tidings.diversify.plain.diversifiers import (
    GrowthRule,
    buckets,
    cover,
    disc,
    divrank,
    grow,
    maxavg,
    maxdivrel,
    maxdivrel_lsh,
    maxmin,
    maxsum,
    optimal,
    pair_distances,
    pair_rank,
    signatures,
    token_hash,
    xxh64,
)
from tidings.diversify.protocol import Candidate, Distance
from tidings.errors import TidingsError
from tidings.model.records import Event
from tidings.model.values import Range

# On a line: near and far are 1/3 apart, and so are far and odd; near and odd are 2/3 apart.
LINE = [
    candidate("near", 0.0, 1, a=1, b=1, c=1),
    candidate("far", 0.0, 2, a=1, b=1, c=2),
    candidate("odd", 0.0, 3, a=1, b=2, c=2),
    candidate("best", 1.0, 4, a=1, b=1, c=1),
]


class Broken(Jaccard):
    """A distance that is no number from 0 on."""

    def between(self, one: Event, other: Event) -> float:
        return -1.0


@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_divrank_is_its_definition(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    chosen = divrank(DivRank(sigma, distance), window, k)
    assert ids(window, chosen) == names(diverse(window, k, sigma, exact))


@pytest.mark.parametrize(("choose", "part"), [(maxmin, MaxMin), (maxsum, MaxSum), (maxavg, MaxAvg)])
@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_dispersion_is_its_definition(
    choose: Any,
    part: Any,
    window: list[Candidate],
    k: int,
    sigma: float,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    chosen = choose(part(sigma, distance), window, k)
    assert ids(window, chosen) == names(dispersed(part, window, k, sigma, exact))


def test_the_weight_of_a_pair_mixes_mean_rank_and_distance() -> None:
    value = pair_rank(0.25, Overlap())
    assert value(LINE[0], LINE[2]) == pytest.approx(0.75 * 2 / 3)
    assert value(LINE[2], LINE[3]) == pytest.approx(0.25 * 0.5 + 0.75 * 2 / 3)
    assert value(LINE[0], LINE[3]) == pytest.approx(0.25 * 0.5)


def test_figure_5_of_pref() -> None:
    assert ids(FIGURE_5, divrank(DivRank(0.5), FIGURE_5, 4)) == ["e1", "e4", "e5", "e6"]


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
@pytest.mark.parametrize(("times", "pair"), SQUARE_TIES)
def test_ties_between_pairs(choose: Any, times: tuple[int, ...], pair: str) -> None:
    window = square(times)
    assert set(ids(window, choose(DivRank(0.5), window, 2))) == set(pair)


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
def test_fewer_than_two_are_chosen_by_rank_alone(choose: Any) -> None:
    part = DivRank(0.0, Broken())
    assert choose(part, LINE, 1) == [3]
    assert choose(part, LINE[:1], 5) == [0]
    assert choose(part, [], 5) == []


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
def test_all_are_chosen_where_there_are_fewer_than_k(choose: Any) -> None:
    assert sorted(choose(DivRank(0.5), LINE, 9)) == [0, 1, 2, 3]


def test_links_to_the_chosen_are_combined_and_given_to_the_rule_with_their_number() -> None:
    seen = list[tuple[str, float, int]]()

    def value(one: Candidate, links: float, size: int) -> float:
        seen.append((one.event.id, links, size))
        return links

    rule = GrowthRule(
        link=lambda one, other: abs(one.rank - other.rank), combine=operator.add, value=value
    )
    window = [candidate(name, rank) for name, rank in zip("abcd", (0, 1, 4, 9), strict=True)]
    pair_sum = grow(window, 4, lambda one, other: one.rank + other.rank, rule)
    assert ids(window, pair_sum) == ["c", "d", "a", "b"]
    assert seen == [("a", 13.0, 2), ("b", 11.0, 2), ("b", 12.0, 3)]


def test_of_equal_values_the_newest_is_added_and_then_the_smaller_id() -> None:
    window = [
        candidate("old", 0.5, 1, x=3),
        candidate("b", 0.5, 2, x=4),
        candidate("a", 0.5, 2, x=5),
        candidate("one", 0.9, 0, x=1),
        candidate("two", 0.9, 0, x=2),
    ]
    assert ids(window, divrank(DivRank(0.5), window, 5)) == ["one", "two", "a", "b", "old"]


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
def test_a_wrong_distance_is_refused(choose: Any) -> None:
    with pytest.raises(TidingsError, match="distance"):
        choose(DivRank(0.5, Broken()), LINE, 2)


@given(windows(min_size=1), st.integers(1, 7), SIGMAS, DISTANCES)
def test_no_set_has_a_larger_divrank(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged

    def divrank(chosen: tuple[Candidate, ...]) -> Fraction:
        div = mean(exact(one.event, other.event) for one, other in combinations(chosen, 2))
        rank = mean(Fraction(one.rank) for one in chosen)
        return Fraction(sigma) * rank + (1 - Fraction(sigma)) * div

    size = min(k, len(window))
    chosen = [window[i] for i in optimal(Optimal(sigma, distance), window, k)]
    assert len({id(one) for one in chosen}) == size
    assert chosen == sorted(chosen, key=by_rank)
    assert divrank(tuple(chosen)) == max(map(divrank, combinations(window, size)))


@pytest.mark.parametrize(("times", "pair"), SQUARE_TIES)
def test_ties_between_sets(times: tuple[int, ...], pair: str) -> None:
    window = square(times)
    assert set(ids(window, optimal(Optimal(0.5), window, 2))) == set(pair)


def test_members_are_returned_by_rank_then_newest() -> None:
    assert ids(FIGURE_5, optimal(Optimal(0.5), FIGURE_5, 4)) == ["e1", "e4", "e5", "e6"]
    assert ids(FIGURE_5, optimal(Optimal(1.0), FIGURE_5, 3)) == ["e1", "e4", "e3"]


def test_fewer_candidates_than_k_are_all_chosen() -> None:
    window = [candidate("a", 0.1), candidate("b", 0.9)]
    assert optimal(Optimal(), window, 5) == [1, 0]
    assert optimal(Optimal(), [], 5) == []


def test_more_sets_than_allowed_are_refused() -> None:
    part = Optimal().bounded(14)
    with pytest.raises(TidingsError, match="the sets of 4 of 6 events are more than"):
        optimal(part, FIGURE_5, 4)
    assert len(optimal(Optimal().bounded(15), FIGURE_5, 4)) == 4


class Rule(NamedTuple):
    """A plain choice, its part of a policy, and the gain by its definition."""

    choose: Any
    part: Any
    gain: Gain


RULES = [Rule(disc, Disc, most_neighbours), Rule(maxdivrel, MaxDivRel, relevance_over_crowd)]
BOTH = pytest.mark.parametrize("rule", RULES, ids=["disc", "maxdivrel"])

# a-b, b-c and c-d are neighbours at 1/3; any other two are farther apart.
CHAIN = [
    candidate("a", 0.4, 1, x=1, y=1, z=1),
    candidate("b", 0.3, 2, x=2, y=1, z=1),
    candidate("c", 0.2, 3, x=2, y=2, z=1),
    candidate("d", 0.1, 4, x=2, y=2, z=2),
]
THIRD = 1 / 3


@BOTH
@given(windows(min_size=1), st.integers(1, 6), ALPHAS, DISTANCES)
def test_a_choice_is_its_definition(
    rule: Rule,
    window: list[Candidate],
    k: int,
    alpha: Fraction,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    chosen = rule.choose(rule.part(alpha=float(alpha), distance=distance), window, k)
    covered = definition.cover(window, alpha, exact, rule.gain)
    assert ids(window, chosen) == names(definition.cut(covered, k))


@BOTH
@given(windows(min_size=1), st.integers(1, 6), DISTANCES)
def test_without_an_alpha_the_largest_that_yields_k_is_used(
    rule: Rule,
    window: list[Candidate],
    k: int,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    chosen = rule.choose(rule.part(distance=distance), window, k)
    covered = definition.fitting_cover(window, k, exact, rule.gain)
    assert ids(window, chosen) == names(definition.cut(covered, k))


def test_disc_counts_neighbours_that_are_still_white() -> None:
    """First b and c have two neighbours each, and b has the higher rank; then only d is white."""
    assert ids(CHAIN, disc(Disc(alpha=THIRD), CHAIN, 4)) == ["b", "d"]


def test_maxdivrel_divides_relevance_by_that_around() -> None:
    """Gains .16/.1, .09/.2, .04/.1333 and .01/.0667: a is first, then c, alone with d."""
    assert ids(CHAIN, maxdivrel(MaxDivRel(alpha=THIRD), CHAIN, 4)) == ["a", "c"]


def test_the_neighbours_at_exactly_alpha_are_covered() -> None:
    assert len(disc(Disc(alpha=THIRD), CHAIN, 4)) == 2
    assert len(disc(Disc(alpha=THIRD - 1e-9), CHAIN, 4)) == 4


def test_a_cover_is_cut_to_the_most_relevant_in_order_of_choice() -> None:
    window = [
        candidate("low", 0.1, x=1, y=1),
        candidate("low2", 0.1, x=1, y=1),
        candidate("mid", 0.5, x=2, y=2),
        candidate("high", 0.9, x=3, y=3),
    ]
    assert ids(window, disc(Disc(alpha=0.4), window, 3)) == ["low", "high", "mid"]
    assert ids(window, disc(Disc(alpha=0.4), window, 2)) == ["high", "mid"]


@BOTH
def test_fewer_candidates_than_k_are_all_chosen_by_rank(rule: Rule) -> None:
    assert ids(CHAIN, rule.choose(rule.part(alpha=1), CHAIN[::-1], 5)) == ["d", "c", "b", "a"]
    assert rule.choose(rule.part(), [], 1) == []


@BOTH
def test_duplicates_make_a_choice_smaller_than_k(rule: Rule) -> None:
    window = [candidate("a", 0.2, x=1), candidate("b", 0.9, x=1), candidate("c", 0.1, x=2)]
    assert sorted(ids(window, rule.choose(rule.part(), window, 3))) == ["b", "c"]


def test_distances_are_taken_in_both_directions() -> None:
    distances = pair_distances(CHAIN[:3], Overlap())
    assert distances == {
        (0, 1): THIRD,
        (1, 0): THIRD,
        (1, 2): THIRD,
        (2, 1): THIRD,
        (0, 2): 2 / 3,
        (2, 0): 2 / 3,
    }


def test_of_equal_gains_the_higher_rank_wins_and_then_the_newer() -> None:
    window = [
        candidate("old", 0.5, 1, x=1),
        candidate("new", 0.5, 2, x=2),
        candidate("best", 0.6, 0, x=3),
    ]
    distances = pair_distances(window, Overlap())
    chosen = cover(window, 0.5, distances, lambda *_: math.inf)
    assert ids(window, chosen) == ["best", "new", "old"]


LARGEST = 2**64 - 1


def grouped(signed: np.ndarray, rows: int) -> list[tuple[int, list[int]]]:
    return [(table, members) for (table, _), members in buckets(signed, rows).items()]


def test_table_5_9_has_shared_buckets_in_every_table() -> None:
    shared = [group for group in grouped(TABLE_5_9, 3) if len(group[1]) > 1]
    assert sorted(shared) == [
        (0, [0, 3]),
        (0, [1, 2]),
        (1, [0, 3]),
        (1, [1, 2, 4]),
        (2, [1, 4]),
        (2, [2, 3]),
        (3, [0, 4]),
        (3, [1, 3]),
    ]


def test_the_same_band_in_another_table_is_another_bucket() -> None:
    signed = np.array([[7, 7], [7, 8]], np.uint64)
    assert sorted(grouped(signed, 1)) == [(0, [0, 1]), (1, [0]), (1, [1])]


def test_an_event_without_tokens_has_the_largest_signature() -> None:
    assert signatures([Event("e", {}, 0)], 3).tolist() == [[LARGEST] * 3]
    assert signatures([], 3).shape == (0, 3)


def test_a_signature_is_that_of_the_set_of_tokens() -> None:
    one, same, other = signatures(
        [
            Event("a", {"tag": ["x", "y"], "year": 3}, 0),
            Event("b", {"year": 3.0, "tag": ["y", "x", "y"]}, 9),
            Event("c", {"tag": ["x", "y"], "year": 4}, 0),
        ],
        16,
    ).tolist()
    assert one == same
    assert one != other


def test_a_signature_of_a_union_is_the_smaller_of_its_parts() -> None:
    parts = [Event("a", {"x": 1}, 0), Event("b", {"y": "z"}, 0), Event("c", {"x": 1, "y": "z"}, 0)]
    left, right, union = signatures(parts, 32)
    assert union.tolist() == np.minimum(left, right).tolist()


def test_a_seed_changes_the_order_of_tokens() -> None:
    event = Event("a", {"x": 1}, 0)
    assert signatures([event], 4, seed=1).tolist() != signatures([event], 4).tolist()
    assert signatures([event], 4, seed=2**64).tolist() == signatures([event], 4).tolist()


def test_equal_rows_are_as_frequent_as_tokens_are_similar() -> None:
    """Three of five tokens are common; the standard error of 4000 rows is below 0.008."""
    one = Event("a", {"tag": ["p", "q", "r", "s"]}, 0)
    other = Event("b", {"tag": ["p", "q", "r", "t"]}, 0)
    left, right = signatures([one, other], 4000)
    assert np.mean(left == right) == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize(
    ("token", "text", "family"),
    [
        (("string", "1"), b"1", 0),
        (("number", 1.0), b"1.0", 1),
        (("boolean", True), b"True", 2),
        (("time", 5), b"5", 3),
        (("number", Range(20, 30)), b"20.0 30.0 overlaps", 1),
        (("number", Range(20, 30, mode="contained")), b"20.0 30.0 contained", 1),
    ],
)
def test_a_token_is_hashed_by_its_text_name_and_family(token, text, family):
    assert token_hash("a", token) == xxh64(text, (xxh64(b"a") + family) % 2**64)
    assert token_hash("b", token) != token_hash("a", token)


def test_the_best_of_each_bucket_gets_its_vote() -> None:
    window = [
        candidate("a", 0.5, x=1),
        candidate("b", 0.9, x=1),
        candidate("c", 0.7, x=2),
        candidate("d", 0.1, x=3),
    ]
    part = MaxDivRelLsh(tables=4, rows=2)
    assert ids(window, maxdivrel_lsh(part, window, 2)) == ["b", "c"]
    assert ids(window, maxdivrel_lsh(part, window, 4)) == ["b", "c", "d"]
    assert ids(window, maxdivrel_lsh(part, window, 5)) == ["b", "c", "a", "d"]


@given(windows(min_size=1), st.integers(1, 6), st.integers(0, 3))
def test_the_winners_are_those_of_most_buckets(window: list[Candidate], k: int, seed: int) -> None:
    part = MaxDivRelLsh(tables=5, rows=2, seed=seed)
    k = min(k, len(window))
    signed = signatures([one.event for one in window], 10, seed).tolist()

    def votes(one: int) -> int:
        """Count the tables in which no better candidate has the same band."""
        rivals = [i for i in range(len(window)) if by_rank(window[i]) < by_rank(window[one])]
        bands = [slice(start, start + 2) for start in range(0, 10, 2)]
        return sum(all(signed[i][band] != signed[one][band] for i in rivals) for band in bands)

    winners = [i for i in range(len(window)) if votes(i)]
    winners.sort(key=lambda i: (-votes(i), by_rank(window[i])))
    assert maxdivrel_lsh(part, window, k) == winners[:k]


PRIME = 2654435761


def specified(size: int) -> bytes:
    """The first bytes of the text that the vectors of the specification hash."""
    state, text = PRIME, bytearray()
    for _ in range(size):
        text.append(state >> 56)
        state = state * 0x9E3779B185EBCA8D % 2**64
    return bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"asdf", 0x415872F599CEA71E),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
        (
            b"Call me Ishmael. Some years ago--never mind how long precisely-",
            0x02A2E85470D6FD96,
        ),
    ],
)
def test_published_hashes(text, expected):
    assert xxh64(text) == expected


@pytest.mark.parametrize(
    ("size", "seed", "expected"),
    [
        (0, PRIME, 0xAC75FDA2929B17EF),
        (1, 0, 0xE934A84ADB052768),
        (1, PRIME, 0x5014607643A9B4C3),
        (4, 0, 0x9136A0DCA57457EE),
        (14, 0, 0x8282DCC4994E35C8),
        (14, PRIME, 0xC3BD6BF63DEB6DF0),
        (222, 0, 0xB641AE8CB691C174),
        (222, PRIME, 0x20CB8AB7AE10C14A),
    ],
)
def test_hashes_of_the_specification_with_seeds(size, seed, expected):
    assert xxh64(specified(size), seed) == expected


@given(st.binary(max_size=80), st.integers(0, 2**64 - 1))
def test_a_hash_has_64_bits_and_depends_on_the_seed(text, seed):
    assert 0 <= xxh64(text, seed) < 2**64
    assert xxh64(text, seed) != xxh64(text, seed ^ 1)


@pytest.mark.parametrize("size", [1, 4, 8, 31, 32, 33, 63, 64, 69])
def test_every_byte_counts(size):
    text = bytes(size)
    changed = {xxh64(text[:i] + b"\1" + text[i + 1 :]) for i in range(size)}
    assert len(changed | {xxh64(text)}) == size + 1
