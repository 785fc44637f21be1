"""File names for ids: unique, and directly in their folder."""

from tidings.index_files.file_names import file_name
from tidings.index_files.manifest import is_file_name

HOSTILE = [".", "..", "../..", "/", "/etc", "a/../../b", "x" * 300, "a\0b", "A", "a", "ä", "%2e%2e"]
HOSTILE += ["=a", ".new-x", "\ud800", "a b", "*", "?", "~", "\\..", "-", "CON"]


def test_file_names_are_unique_and_stay_in_their_folder() -> None:
    names = [file_name(name) for name in [*HOSTILE, ""]]
    assert len({name.lower() for name in names}) == len(names)
    assert all(is_file_name(name) and len(name) < 200 for name in names)
    assert file_name("2b6e3c1a-0f") == "2b6e3c1a-0f"
