"""HTML and SVG as trees of elements, so that every text is escaped where it is written."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

Node = Element | str


def tag(name: str, /, *children: Node | Iterable[Node] | None, **attributes: object) -> Element:
    """Return an element; `class_` and `aria_label` stand for the attributes class and aria-label.

    >>> tostring(tag("p", "a < b & ", tag("b", "c"), class_='"quoted"'), encoding="unicode")
    '<p class="&quot;quoted&quot;">a &lt; b &amp; <b>c</b></p>'
    """
    names = {key: key.rstrip("_").replace("_", "-") for key in attributes}
    element = Element(name, {names[key]: str(value) for key, value in attributes.items()})
    for child in children:
        if child is not None:
            _append(element, [child] if isinstance(child, Element | str) else child)
    return element


def _append(element: Element, children: Iterable[Node]) -> None:
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + child
        else:
            element.text = (element.text or "") + child


def svg(width: float, height: float, label: str, *children: Node | Iterable[Node]) -> Element:
    """Return a picture that scales with its container; `label` is read aloud instead of it."""
    box = f"0 0 {width:g} {height:g}"
    return tag("svg", *children, viewBox=box, role="img", aria_label=label)


def with_title(element: Element, text: str) -> Element:
    """Add a text that appears when the pointer is over the element of a picture; return it."""
    SubElement(element, "title").text = text
    return element


def page(root: Element) -> str:
    """Return the text of a page."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n"


def styled_page(title: str, style: str, *body: Node | Iterable[Node] | None) -> str:
    """Return the text of a self-contained page: it has its own style, and fetches nothing."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", style),
    )
    return page(tag("html", head, tag("body", *body), lang="en"))


def fragment(element: Element) -> str:
    """Return the text of an element that becomes part of a page."""
    return tostring(element, encoding="unicode", method="html")
