from html.parser import HTMLParser

import pytest

from tidings.formats.markup import page, svg, tag, with_title


class Reader(HTMLParser):
    """A parser that keeps the tags with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x>', "&amp; '", 'a"b'])
def test_texts_and_attributes_are_escaped(text: str) -> None:
    read = Reader(page(tag("p", text, tag("b", text), text, title=text)))
    assert read.tags == [("p", {"title": text}), ("b", {})]
    assert read.text.strip() == text * 3


def test_children_are_texts_elements_and_iterables_of_them() -> None:
    row = tag("p", "a ", tag("b", "c"), " d", None, (tag("i", word) for word in "ef"), " g")
    assert page(row) == "<!DOCTYPE html>\n<p>a <b>c</b> d<i>e</i><i>f</i> g</p>\n"


def test_attributes_of_several_words() -> None:
    circle = with_title(tag("circle", r=1, class_="lit"), "A & B")
    assert Reader(page(svg(10, 5, "a < b", circle))).tags == [
        ("svg", {"viewbox": "0 0 10 5", "role": "img", "aria-label": "a < b"}),
        ("circle", {"r": "1", "class": "lit"}),
        ("title", {}),
    ]
