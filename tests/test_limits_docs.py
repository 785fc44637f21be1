"""The page on limits has the limits of the code, in both presets."""

from dataclasses import fields
from pathlib import Path

from tidings.model.limits import Limits

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"


def test_the_page_lists_every_limit_of_both_presets() -> None:
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    listed = {row[1].strip(): (row[3].strip(), row[4].strip()) for row in rows if len(row) == 6}
    presets = (Limits.trusted(), Limits.public())
    for each in fields(Limits):
        trusted, public = (f"{getattr(preset, each.name):,}" for preset in presets)
        assert listed[f"`{each.name}`"] == (trusted, public)
