"""Templates of text: what they show, how they fail, and that their work is bounded."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.channels.text_template import TextTemplate
from tidings.errors import InvalidForm

FILM = {
    "title": "Big Fish",
    "year": 2003,
    "cast": ["McGregor", "Finney"],
    "author": {"name": "Wallace", "born": None},
    "zero": 0,
    "flag": False,
    "awards": [{"name": "Saturn", "won": True}, {"name": "BAFTA"}],
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("no tags", "no tags"),
        ("{{title}} ({{year}})", "Big Fish (2003)"),
        ("{{ title }}{{missing}}{{author}}", "Big Fish"),
        ("{{author.name}} {{author.born}}{{author.name.first}}", "Wallace "),
        ("{{name or headline or title}}", "Big Fish"),
        ("{{cast}}", "McGregor, Finney"),
        ("{{#year}}in {{year}}{{/year}}{{^year}}some day{{/year}}", "in 2003"),
        ("{{#day}}on {{day}}{{/day}}{{^day}}some day{{/day}}", "some day"),
        ("{{#cast}}<{{.}}>{{/cast}}", "<McGregor><Finney>"),
        (
            "{{#awards}}{{name}}{{#won}} won{{/won}} {{year}};{{/awards}}",
            "Saturn won 2003;BAFTA 2003;",
        ),
        ("{{#author}}{{name}}, {{title}}{{/author}}", "Wallace, Big Fish"),
        ("{{zero}}{{#zero}}!{{/zero}}{{#flag}}?{{/flag}}{{flag}}", "0!false"),
        ("a{{! nothing\nat all }}b", "ab"),
    ],
)
def test_values_and_sections(source: str, expected: str) -> None:
    assert TextTemplate(source).render([FILM]) == expected


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("a\n{{#x}}", "line 2: {{#x}} is never closed"),
        ("a\n\n{{/x}}", "line 3: {{/x}} ends a section that is not open here; expected no end"),
        ("{{#a}}\n{{#b}}{{/a}}", "line 2: {{/a}} ends a section .* expected {{/b}}"),
        ("\n{{ title", "line 2: a tag is opened and never closed"),
        ("title }}\n", "line 1: a tag is closed and never opened"),
        ("{{a b}}", "line 1: {{a b}} is not a tag; expected one of"),
        ("{{}}", "line 1: {{}} is not a tag"),
        ("{{a.__class__()}}", "line 1"),
        ("\n{{{title}}}", "line 2"),
        ("{{#a}}" * 9 + "{{/a}}" * 9, "nested more than 8 deep"),
        ("x" * 4_001, "at most 4,000 characters"),
        (7, "at most 4,000 characters, not 7"),
    ],
)
def test_a_mistake_is_named_with_its_line(source: Any, reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        TextTemplate(source)


def test_nothing_but_given_values_is_reached() -> None:
    template = TextTemplate("{{title.__class__}}{{__class__}}{{title.upper}}{{cast.0}}")
    assert template.render([FILM]) == ""


def test_work_and_output_are_bounded() -> None:
    deep: Any = ["x"] * 20
    values = {"a": deep}
    nested = TextTemplate("{{#a}}" * 8 + "y" + "{{/a}}" * 8)  # 20 ** 8 repetitions
    assert len(nested.render([values])) <= 5_000
    assert TextTemplate("{{#a}}" * 8 + "{{/a}}" * 8).render([values]) == ""
    assert TextTemplate("{{t}}").render([{"t": "z" * 10_000}], most=10) == "z" * 10
    assert TextTemplate("{{n}}").render([{"n": 10**10_000}]) == ""


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
pieces = st.sampled_from(
    [
        "{{",
        "}}",
        "{{a}}",
        "{{#a}}",
        "{{/a}}",
        "{{^b}}",
        "{{/b}}",
        "{{a or b.c}}",
        "{{.}}",
        "\n",
        "é",
    ]
)


@given(source=st.lists(pieces, max_size=8).map("".join) | st.text(max_size=20), content=values)
def test_any_text_is_filled_in_or_refused(source: str, content: Any) -> None:
    try:
        template = TextTemplate(source)
    except InvalidForm:
        return
    assert len(template.render([content], most=50)) <= 50
    if "{{" not in source:
        assert template.render([content]) == source


@given(st.text(max_size=20))
def test_values_are_not_templates(text: str) -> None:
    content = {"t": "{{secret}}" + text, "secret": "hidden"}
    assert TextTemplate("{{t}}").render([json.loads(json.dumps(content))]) == content["t"].strip()
