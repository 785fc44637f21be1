"""The contract of every diversifier (semantics §5); a new one joins by its line in the registry."""

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diversify.small import by_rank, candidate, ids, large_windows, names, windows

from tidings.diversify import DIVERSIFIERS, Submatrix, distances, order_of
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate, Diversifier
from tidings.diversify.tie_order import ranks_and_keys
from tidings.errors import InvalidPolicy
from tidings.model import named_parts
from tidings.model.records import Event

# Other parameters than the defaults; each part gets those that it has.
OTHERS = {
    "sigma": 0.25,
    "alpha": 0.5,
    "tables": 3,
    "rows": 1,
    "seed": 9,
    "distance": "jaccard",
}
BAD: dict[str, list[Any]] = {
    "sigma": [-0.1, 1.5, math.nan, "half", None, True],
    "alpha": [0, -1, math.inf, "near"],
    "tables": [0, 2.5, True],
    "rows": [0, "five"],
    "seed": [-1, 0.5],
    "error": [0, -1],
    "threshold": [-1, 2],
    "distance": ["manhattan", 3, {"weights": {}}, {"name": "overlap", "weights": {"a": -1}}],
}


def parameters(name: str) -> set[str]:
    return {field.name for field in fields(DIVERSIFIERS[name])}  # type: ignore[arg-type]


def make(name: str, **given: Any) -> Diversifier:
    return named_parts.read(DIVERSIFIERS, "diversifier", {"name": name, **given})


VARIANTS = {
    f"{name}{label}": make(
        name, **{key: OTHERS[key] for key in OTHERS if label and key in parameters(name)}
    )
    for name in DIVERSIFIERS
    for label in ("", " otherwise")
}
WEIGHTED = {"name": "overlap", "weights": {"a": 0.1, "b": 0.7, "c": 3, "d": 0}}
TWINS = VARIANTS | {f"{name} weighted": make(name, distance=WEIGHTED) for name in DIVERSIFIERS}
few = settings(max_examples=30)  # of each part, and there are many
every_part = pytest.mark.parametrize("part", VARIANTS.values(), ids=VARIANTS)
every_name = pytest.mark.parametrize("name", DIVERSIFIERS)


every_twin = pytest.mark.parametrize("part", TWINS.values(), ids=TWINS)


def of_small_size(part: Diversifier, window: list[Candidate]) -> list[Candidate]:
    """Windows that are small enough for the plain version."""
    return window[:8] if part.name == "optimal" else window


@every_twin
@few
@given(window=large_windows(min_size=1), k=st.integers(1, 7))
def test_choices_equal_those_of_the_plain_version(
    part: Diversifier, window: list[Candidate], k: int
) -> None:
    window = of_small_size(part, window)
    assert part.choose(window, k) == PLAIN[part.name](part, window, k)


@every_twin
@few
@given(window=large_windows(min_size=1), k=st.integers(1, 7))
def test_pick_equals_choose(part: Diversifier, window: list[Candidate], k: int) -> None:
    window = of_small_size(part, window)
    events = [member.event for member in window]
    apart: Any = distances(events, part.distance)
    if isinstance(part, MaxDivRelLsh):
        apart = part.bands(events)
    picked = part.pick(*ranks_and_keys(window), order_of(events), apart, k)
    assert picked.tolist() == part.choose(window, k)


@every_twin
@few
@given(window=large_windows(min_size=1), k=st.integers(1, 7), data=st.data())
def test_pick_takes_rows_of_a_larger_matrix(
    part: Diversifier, window: list[Candidate], k: int, data: st.DataObject
) -> None:
    if isinstance(part, MaxDivRelLsh):
        return
    window = of_small_size(part, window)
    members = np.array(data.draw(st.permutations(range(len(window))))[: k + 3])
    some = [window[i] for i in members]
    matrix = distances([member.event for member in window], part.distance)
    order = order_of([member.event for member in some])
    picked = part.pick(*ranks_and_keys(some), order, Submatrix(matrix, members), k)
    assert picked.tolist() == part.choose(some, k)


class Halved:
    """A user-defined distance."""

    name = "halved"

    def between(self, one: Event, other: Event) -> float:
        return Jaccard().between(one, other) / 2


@every_name
@few
@given(window=large_windows(min_size=1, max_size=7), k=st.integers(1, 7))
def test_user_defined_distances_are_called(name: str, window: list[Candidate], k: int) -> None:
    part = DIVERSIFIERS[name]()
    object.__setattr__(part, "distance", Halved())
    assert part.choose(window, k) == PLAIN[name](part, window, k)


@every_part
@few
@given(window=windows(), k=st.integers(1, 7))
def test_at_most_k_distinct_candidates_are_chosen(
    part: Diversifier, window: list[Candidate], k: int
) -> None:
    chosen = part.choose(window, k)
    assert len(chosen) <= min(k, len(window))
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(range(len(window)))
    assert bool(chosen) == bool(window)


@every_part
@few
@given(window=windows())
def test_fewer_than_k_candidates_are_all_chosen(part: Diversifier, window: list[Candidate]) -> None:
    assert sorted(part.choose(window, len(window) + 1)) == list(range(len(window)))


@every_part
@pytest.mark.parametrize("k", [1, 3])
def test_no_candidates_choose_nothing(part: Diversifier, k: int) -> None:
    assert part.choose([], k) == []


@every_part
@few
@given(window=windows(), k=st.integers(1, 6), data=st.data())
def test_the_order_of_the_candidates_does_not_matter(
    part: Diversifier, window: list[Candidate], k: int, data: st.DataObject
) -> None:
    other = data.draw(st.permutations(window))
    assert ids(other, part.choose(other, k)) == ids(window, part.choose(window, k))


@every_part
@few
@given(window=windows(), k=st.integers(1, 6))
def test_candidates_are_not_modified(part: Diversifier, window: list[Candidate], k: int) -> None:
    before = list(window)
    assert part.choose(window, k) == part.choose(tuple(window), k)
    assert window == before


@every_part
@few
@given(window=windows(min_size=1))
def test_a_larger_k_never_chooses_fewer(part: Diversifier, window: list[Candidate]) -> None:
    sizes = [len(part.choose(window, k)) for k in range(1, len(window) + 2)]
    assert sizes == sorted(sizes)


@every_part
@few
@given(window=windows(min_size=1), k=st.integers(1, 6))
def test_of_equally_distant_events_the_k_best_are_chosen(
    part: Diversifier, window: list[Candidate], k: int
) -> None:
    """Where everything is equally far apart, only ranks and the order of ties are left."""
    apart = [
        candidate(member.event.id, member.rank, member.event.published_at, name=member.event.id)
        for member in window
    ]
    best = names(sorted(apart, key=by_rank)[:k])
    assert sorted(ids(apart, part.choose(apart, k))) == sorted(best)


@every_part
@few
@given(window=windows(min_size=1), k=st.integers(1, 6))
def test_of_all_equal_events_the_best_is_chosen(
    part: Diversifier, window: list[Candidate], k: int
) -> None:
    same = [
        candidate(member.event.id, member.rank, member.event.published_at, name="same")
        for member in window
    ]
    assert min(same, key=by_rank).event.id in ids(same, part.choose(same, k))


@every_part
def test_full_ties_go_to_the_smaller_id(part: Diversifier) -> None:
    window = [candidate(name, 0.5, name=name) for name in ("c", "a", "d", "b")]
    assert sorted(ids(window, part.choose(window, 2))) == ["a", "b"]


@every_part
def test_the_json_form_reads_back(part: Diversifier) -> None:
    form = json.loads(json.dumps(named_parts.form(part)))
    assert named_parts.read(DIVERSIFIERS, "diversifier", form) == part
    assert hash(part) == hash(named_parts.read(DIVERSIFIERS, "diversifier", form))


@every_name
def test_a_name_alone_means_the_defaults(name: str) -> None:
    part = named_parts.read(DIVERSIFIERS, "diversifier", name)
    assert part == DIVERSIFIERS[name]()
    assert part.name == name
    assert 0 <= part.sigma <= 1


@every_name
def test_a_distance_is_a_name_a_form_or_a_part(name: str) -> None:
    weighted = {"name": "overlap", "weights": {"genre": 2.0}}
    assert make(name, distance="jaccard").distance == Jaccard()
    assert make(name, distance=Jaccard()) == make(name, distance="jaccard")
    assert make(name, distance=weighted).distance == Overlap({"genre": 2.0})
    assert make(name, distance=weighted) == make(name, **read_back(make(name, distance=weighted)))


def read_back(part: Diversifier) -> dict[str, Any]:
    form = named_parts.form(part)
    assert isinstance(form, dict)
    return {key: value for key, value in form.items() if key != "name"}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        (name, parameter, value)
        for name in DIVERSIFIERS
        for parameter in BAD
        if parameter in parameters(name)
        for value in BAD[parameter]
    ],
)
def test_bad_parameters_are_refused_by_name_and_value(
    name: str, parameter: str, value: Any
) -> None:
    partner = {"error": {"threshold": 0.5}, "threshold": {"error": 0.1}}.get(parameter, {})
    with pytest.raises(InvalidPolicy) as refusal:
        make(name, **{parameter: value}, **partner)
    message = str(refusal.value)
    shown = -1 if isinstance(value, dict) and "name" in value else value
    assert message.startswith(f"diversifier {name}: ")
    assert repr(shown) in message
    assert parameter in message or "weight of a" in message


@every_name
def test_unknown_parameters_are_refused_and_the_known_ones_listed(name: str) -> None:
    with pytest.raises(InvalidPolicy, match="unknown parameter 'colour'") as refusal:
        make(name, colour="red")
    assert all(parameter in str(refusal.value) for parameter in parameters(name))
