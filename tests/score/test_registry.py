"""Scorers and decays by name: each is read from its name, and says what it is."""

from typing import Any

import pytest

from tidings.errors import InvalidPolicy
from tidings.model import named_parts
from tidings.model.records import Event, Subscription
from tidings.score.registry import DECAYS, SCORERS

NEEDED: dict[str, dict[str, Any]] = {"exponential": {"rate": 0.5}}
SUBSCRIPTION = Subscription("s", "u", where="x = 1", prefrank=0.5, score=0.5)


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_is_read_from_its_name_and_ranks(name: str) -> None:
    scorer = named_parts.read(SCORERS, "scorer", name)
    assert type(scorer) is SCORERS[name]
    assert scorer.name == name
    ranker = scorer.prepare([SUBSCRIPTION], [])
    rank = ranker.rank(Event("e", {"x": 1}, 0), [SUBSCRIPTION])
    assert rank is None or rank >= 0
    assert ranker.score(Event("e", {"x": 1}, 0), SUBSCRIPTION) is not None


@pytest.mark.parametrize("name", DECAYS)
def test_a_decay_is_read_from_its_form_and_never_raises_a_score(name: str) -> None:
    decay = named_parts.read(DECAYS, "decay", {"name": name, **NEEDED.get(name, {})})
    assert type(decay) is DECAYS[name]
    assert decay.name == name
    fresh = [decay.fresh(0.5, 10**7, now) for now in (10**7, 2 * 10**7, 10**9)]
    assert fresh == sorted(fresh, reverse=True)
    assert all(0 <= each <= 0.5 for each in fresh)
    assert decay.key(0.9, 10**7) >= decay.key(0.5, 10**7)


@pytest.mark.parametrize(("registry", "what"), [(SCORERS, "scorer"), (DECAYS, "decay")])
def test_an_unknown_name_is_refused_with_the_known_ones(registry: Any, what: str) -> None:
    with pytest.raises(InvalidPolicy) as error:
        named_parts.read(registry, what, "foo")
    assert str(error.value) == f"unknown {what} 'foo'; expected one of: {', '.join(registry)}"
