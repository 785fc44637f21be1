"""Case folding backwards: the texts that a folded text may come from, by trying them all."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.conditions.case_folding import (
    UNCERTAIN,
    certain,
    is_caseless,
    least_source,
    sources,
)

ALPHABET = [
    "1",
    "a",
    "A",
    "s",
    "S",
    "ß",
    "ẞ",
    "\u017f",
    "\u017ft",
    "f",
    "F",
    "ff",
    "i",
    "İ",
    "i̇",
    "K",
    "k",
]
"""Characters of one to three folded ones, which overlap."""
CHARS = [char for char in sorted({*"".join(ALPHABET)}) if len(char) == 1]
folded_texts = st.lists(st.sampled_from(ALPHABET), max_size=4).map(lambda t: "".join(t).casefold())
LONGEST = 4


def all_sources(folded: str) -> set[str]:
    """Return the texts of these characters that fold to a text."""
    found = set()
    for size in range(len(folded) + 1):
        found |= {
            "".join(t) for t in product(CHARS, repeat=size) if "".join(t).casefold() == folded
        }
    return found


@given(folded_texts.filter(lambda text: len(text) <= LONGEST))
def test_all_sources_of_these_characters_are_found(folded: str) -> None:
    found = [*sources(folded)]
    assert len(found) == len({*found})
    assert all(source.casefold() == folded for source in found)
    assert all_sources(folded) <= {*found}


@given(st.text(max_size=6))
def test_a_text_is_a_source_of_what_it_folds_to(text: str) -> None:
    folded = text.casefold()
    assert folded in {*sources(folded)} or len(folded) > 6
    if len(folded) <= 6:
        assert text in {*sources(folded)}


@pytest.mark.parametrize(
    ("folded", "expected"),
    [
        ("", [""]),
        ("1", ["1"]),
        (
            "ss",
            [
                "SS",
                "Ss",
                "S\u017f",
                "sS",
                "ss",
                "s\u017f",
                "\u017fS",
                "\u017fs",
                "\u017f\u017f",
                "ß",
                "ẞ",
            ],
        ),
        ("k", ["K", "k", "\u212a"]),
    ],
)
def test_the_sources_of_a_few_texts(folded: str, expected: list[str]) -> None:
    assert sorted(sources(folded)) == sorted(expected)


@given(folded_texts.filter(lambda text: len(text) <= 3), st.text("1AKSakst\u017fßẞ", max_size=3))
def test_the_least_source_is_the_first_that_is_not_below(folded: str, least: str) -> None:
    above = [source for source in sources(folded) if source >= least]
    assert least_source(folded, least) == min(above, default=None)


@given(
    folded_texts.filter(lambda text: 0 < len(text) <= 2), st.text("1AKSakst\u017fßẞ", max_size=3)
)
def test_the_least_source_of_a_beginning_is_below_all_longer_ones(folded: str, least: str) -> None:
    """Where the text may go on, the answer is not above any text whose folding begins so."""
    found = least_source(folded, least, open_end=True)
    longer = [
        "".join(chars)
        for size in (1, 2, 3)
        for chars in product(CHARS, repeat=size)
        if "".join(chars).casefold().startswith(folded) and "".join(chars) >= least
    ]
    if found is None:
        assert longer == []
    else:
        assert found >= least
        assert found.casefold().startswith(folded)
        assert all(found <= text for text in longer)


@given(folded_texts.filter(lambda text: len(text) <= LONGEST))
def test_certain_characters_are_those_that_all_sources_have(folded: str) -> None:
    mask = certain(folded)
    assert len(mask) == len(folded)
    for source in sources(folded):
        at = 0
        for char in source:
            end = at + len(char.casefold())
            if char != folded[at:end]:
                assert {*mask[at:end]} == {UNCERTAIN}
            at = end


@pytest.mark.parametrize(
    ("folded", "sides", "shown"),
    [
        ("1a2", {}, "1?2"),
        ("2003", {}, "2003"),
        ("", {}, ""),
        ("漢字", {}, "漢字"),
        ("1\u02be", {}, "1\u02be"),
        ("\u02be1", {"open_start": True}, "?1"),  # the end of a folding of two characters
        ("a\u02be", {}, "??"),
        ("1\u02be", {"open_start": True}, "1\u02be"),
    ],
)
def test_open_sides_may_cut_a_folding_in_two(
    folded: str, sides: dict[str, bool], shown: str
) -> None:
    assert certain(folded, **sides).replace(UNCERTAIN, "?") == shown


def test_what_folding_changes_nowhere_is_caseless() -> None:
    for text in ("2003", "", "-_", "漢字", "\U0001f600", "\u0627"):
        assert is_caseless(text)
    for text in ("a", "1a", "k", "ä", "ß".casefold(), "\u02be", "\u0307"):
        assert not is_caseless(text)


def test_every_character_that_folding_changes_is_a_source_of_its_folding() -> None:
    changed = [
        char
        for char in map(chr, range(0x3000))
        if char.casefold() != char and not "\ud800" <= char <= "\udfff"
    ]
    assert len(changed) > 1_000
    for char in changed:
        assert char in {*sources(char.casefold())}
        assert not is_caseless(char.casefold())


@pytest.mark.parametrize(
    ("folded", "least", "found"),
    [
        ("ab", "", "AB"),
        ("ab", "AB", "AB"),
        ("ab", "AC", "Ab"),
        ("ab", "Az", "aB"),
        ("ab", "ab", "ab"),
        ("ab", "abc", None),
        ("ab", "b", None),
        ("", "", ""),
        ("", "a", None),
        ("ss", "sT", "ss"),
        ("ss", "t", "ß"),
        ("ss", "à", "\u017fS"),
        ("ss", "\u0180", "\u1e9e"),
    ],
)
def test_the_least_sources_of_a_few_texts(folded: str, least: str, found: str | None) -> None:
    assert least_source(folded, least) == found
