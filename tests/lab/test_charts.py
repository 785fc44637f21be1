"""Pictures: sizes follow the values, and every policy keeps its colour."""

from tidings.lab.charts import Bar, Spread, bars, clip, columns, heat_map, spreads


def test_bars_are_as_long_as_their_values() -> None:
    picture = bars([Bar("a", 2.0), Bar("b", 1.0), Bar("c", None)], str, "label")
    widths = [float(rect.get("width", 0)) for rect in picture.iter("rect")]
    assert widths == [340, 340, 340, 170, 340]
    assert [text.text for text in picture.iter("text")] == ["a", "2.0", "b", "1.0", "c", "none"]


def test_a_box_holds_the_middle_half() -> None:
    picture = spreads([Spread("a", [0.0, 1.0, 2.0, 3.0, 4.0]), Spread("b", [])], str, "label")
    (box,) = picture.iter("rect")
    assert (float(box.get("x", 0)), float(box.get("width", 0))) == (85.0, 170.0)
    assert "nobody" in [text.text for text in picture.iter("text")]


def test_columns_keep_small_counts_visible() -> None:
    picture = columns([0, 1, 1000], 1000, 9, "label")
    assert [rect.get("class") for rect in picture.iter("rect")] == ["p1", "p1"]
    assert [float(rect.get("height", 0)) for rect in picture.iter("rect")] == [1.0, 46.0]


def test_a_heat_map_has_a_square_per_pair() -> None:
    picture = heat_map(["a", "b"], [[1.0, None], [None, 1.0]], "label")
    assert len(list(picture.iter("rect"))) == 4
    assert not [text for text in picture.iter("text") if "transform" in text.attrib]


def test_long_names_above_a_heat_map_are_slanted_and_whole() -> None:
    names = ["daily, decay", "daily, diverse"]
    picture = heat_map(names, [[1.0, 0.5], [0.5, 1.0]], "label")
    slanted = [text.text for text in picture.iter("text") if "transform" in text.attrib]
    assert slanted == names


def test_long_names_are_clipped() -> None:
    assert clip("abcdef", 4) == "abc…"
