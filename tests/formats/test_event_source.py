"""A source is a file, a folder or a pattern; its files come in order of their names."""

import os
from pathlib import Path

import pytest

from tidings.errors import InvalidForm
from tidings.formats.event_source import find_source


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def names(source):
    return [file.relative_to(source.folder).as_posix() for file in source.files()]


def test_a_folder_is_its_files_in_order_of_their_names(tmp_path):
    touch(tmp_path, "in/b.csv", "in/a.csv", "in/_SUCCESS", "in/.a.csv.crc")
    source = find_source(tmp_path, "in", files_per_batch=1)
    assert (names(source), source.suffix) == (["a.csv", "b.csv"], ".csv")
    touch(tmp_path, "in/c.csv", "in/d.md")
    assert [[file.name for file in batch] for batch in source.batches()] == [
        ["a.csv"],
        ["b.csv"],
        ["c.csv"],
    ]


def test_a_pattern_may_reach_through_folders(tmp_path):
    touch(tmp_path, "in/day-1/a.json", "in/day-2/a.json", "in/night/a.json")
    source = find_source(tmp_path, "in/day-?/*.json", "jsonl", 2)
    assert (names(source), source.suffix) == (["day-1/a.json", "day-2/a.json"], ".jsonl")
    assert [len(batch) for batch in source.batches()] == [2]


def test_signs_in_the_name_of_a_file_are_no_pattern(tmp_path):
    touch(tmp_path, "[1]*.csv", "1.csv")
    assert names(find_source(tmp_path, "[1]*.csv")) == ["[1]*.csv"]


def test_an_absolute_path_stays(tmp_path):
    touch(tmp_path, "a.csv")
    assert find_source(Path("elsewhere"), str(tmp_path / "*.csv")).files() == [tmp_path / "a.csv"]


@pytest.mark.parametrize(
    ("path", "form", "reason"),
    [
        ("in", None, "path: 'in' has .csv and .md files; set a format"),
        (
            "in/*.md",
            None,
            "b.md has an unknown suffix; set a format: jsonl, ndjson, json, csv, tsv, parq",
        ),
        ("in", "jsonl", "path: there is no file to read in the folder 'in'"),
        ("in", "md", "format is one of 'jsonl'"),
    ],
)
def test_a_source_of_no_clear_format_is_refused(tmp_path, path, form, reason):
    touch(tmp_path, "in/a.csv", "in/b.md")
    with pytest.raises(InvalidForm) as error:
        find_source(tmp_path, path, form)
    assert reason in str(error.value)


def test_a_file_that_is_older_than_the_one_before_it_is_found(tmp_path):
    touch(tmp_path, "a.csv", "b.csv", "c.csv")
    for name, age in (("a.csv", 1), ("b.csv", 3), ("c.csv", 3)):
        os.utime(tmp_path / name, (age, age))
    source = find_source(tmp_path, "*.csv")
    assert source.older_than_before() is None
    os.utime(tmp_path / "c.csv", (2, 2))
    assert source.older_than_before() == tmp_path / "c.csv"


def test_a_folder_that_is_watched_may_be_empty(tmp_path):
    (tmp_path / "in").mkdir()
    for path, form in (("in", "csv"), ("in/*.csv", None), ("in/*", "csv")):
        source = find_source(tmp_path, path, form, watched=True)
        assert (source.files(), source.suffix) == ([], ".csv")
        touch(tmp_path, "in/a.csv")
        assert names(source) == ["a.csv"]
        (tmp_path / "in/a.csv").unlink()
    with pytest.raises(InvalidForm, match="the folder 'in' is empty; to wait for files, set a"):
        find_source(tmp_path, "in", watched=True)
    with pytest.raises(InvalidForm, match="there is no file at 'out'"):
        find_source(tmp_path, "out", "csv", watched=True)


def test_compressed_files_have_two_suffixes(tmp_path):
    touch(tmp_path, "in/a.CSV.gz", "in/b.csv.gz")
    assert find_source(tmp_path, "in/*").suffix == ".csv.gz"
    touch(tmp_path, "in/c.csv")
    with pytest.raises(InvalidForm, match=r"has .csv and .csv.gz files; set a format"):
        find_source(tmp_path, "in/*")
