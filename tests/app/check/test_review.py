"""Problems in files, each alone and against the others, are reported with location and reason."""

import json

import pyarrow as pa
import pytest
from pyarrow import feather

from tidings import Event, Policy, Subscriber, Subscription
from tidings.app.check.review import detect_kind, review
from tidings.errors import InvalidForm
from tidings.formats import columnar_files
from tidings.formats.files import write_events, write_subscribers, write_subscriptions
from tidings.store import open_store

SUFFIXES = [".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".arrow", ".feather"]
EVENT = {"id": "e1", "published_at": 0, "attributes": {"year": 3}}
ANN = {"id": "ann", "policy": {"k": 2}}
S1 = {"id": "s1", "subscriber": "ann", "where": "year > 3"}


def write(folder, **files):
    for name, forms in files.items():
        text = "".join(f"{form if isinstance(form, str) else json.dumps(form)}\n" for form in forms)
        (folder / f"{name}.jsonl").write_text(text)
    return [folder / f"{name}.jsonl" for name in files]


def problems(paths):
    return [
        (problem.path.name, problem.line, problem.id, problem.reason)
        for problem in review(paths).problems
    ]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_kind_of_a_file_is_detected_from_its_fields(tmp_path, suffix):
    paths = {
        kind: tmp_path / (kind + suffix) for kind in ("events", "subscriptions", "subscribers")
    }
    write_events([Event("e1", {"policy": "x", "subscriber": "y"}, 0)], paths["events"])
    write_subscriptions([Subscription("s1", "ann", "year > 3")], paths["subscriptions"])
    write_subscribers([Subscriber("ann", Policy(k=2), [("s1", "s1b")])], paths["subscribers"])
    assert {kind: detect_kind(path) for kind, path in paths.items()} == {
        kind: kind for kind in paths
    }


def test_the_kind_may_appear_after_bad_records(tmp_path):
    (path,) = write(
        tmp_path, subscribers=["", "{", "3", {"id": "ann"}, {"id": "bob", "prefers": []}]
    )
    assert detect_kind(path) == "subscribers"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "unknown suffix; expected one of: .toml, .jsonl"),
        ("a.jsonl", b"", "this file holds neither events"),
        ("a.json", b'{"id": 3}', "this file holds neither events"),
        ("a.json", b"[", "Expecting value"),
        ("a.csv", b"\xff\xfe\x00", "the header is not UTF-8"),
        ("a.parquet", b"x", "Parquet"),
        ("a.arrow", b"x", ""),
    ],
)
def test_a_file_of_unknown_kind_is_refused(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidForm) as error:
        detect_kind(path)
    assert reason in str(error.value)
    assert [file.kind for file in review([path]).checked] == ["unknown"]


def test_a_file_that_claims_too_much_is_not_expanded(tmp_path, monkeypatch):
    monkeypatch.setattr(columnar_files, "EXPANSION_FLOOR", 1_000_000)
    table = pa.table({"id": pa.nulls(4_000_000, pa.int8())})
    feather.write_feather(table, tmp_path / "f.arrow", compression="zstd")
    with pytest.raises(InvalidForm, match="its buffers would take"):
        detect_kind(tmp_path / "f.arrow")


def test_good_files_have_no_problems(tmp_path):
    paths = write(tmp_path, subscribers=[ANN], subscriptions=[S1], events=[EVENT])
    result = review(paths)
    assert result.problems == []
    assert [(file.path, file.kind, file.records) for file in result.checked] == list(
        zip(paths, ("subscribers", "subscriptions", "events"), (1, 1, 1), strict=True)
    )


CONFIG = """
[source]
path = "events.jsonl"
[subscriptions]
path = "subscriptions.jsonl"
[subscribers]
path = "subscribers.jsonl"
[policies.{name}]
k = 1
[sink]
path = "out"
"""


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("bob", []),
        ("default", []),
        ("ann", ["[policies.ann]: ann already has a policy in"]),
        ("zed", ["[policies.zed]: no subscription has the sub"]),
    ],
)
def test_a_config_brings_its_files_and_its_policies(tmp_path, name, reasons):
    bobs = S1 | {"id": "s2", "subscriber": "bob"}
    files = write(tmp_path, events=[EVENT], subscriptions=[S1, bobs], subscribers=[ANN])
    config = tmp_path / "run.toml"
    config.write_text(CONFIG.format(name=name))
    result = review([config, *files])
    assert len(result.problems) == len(reasons)
    for problem, reason in zip(result.problems, reasons, strict=True):
        assert reason in problem.reason
    assert [file.kind for file in result.checked] == [
        "config",
        "subscribers",
        "subscriptions",
        "events",
    ]


def test_a_broken_config_does_not_hide_the_other_files(tmp_path):
    (path,) = write(tmp_path, events=[EVENT, EVENT])
    config = tmp_path / "run.toml"
    config.write_text("[source]\n")
    found = review([config, path]).problems
    assert [each.path for each in found] == [config, path]
    assert found[0].reason == "config: field 'subscriptions' is missing"


def test_the_store_of_a_config_is_checked_like_its_files(tmp_path):
    with open_store(tmp_path / "people.db") as store:
        store.catalogue.put(
            ANN | {"prefers": [["s1", "s9"]]}, S1, S1 | {"id": "s2", "subscriber": "bob"}
        )
    write(tmp_path, events=[EVENT, {"id": "e2"}])
    config = tmp_path / "run.toml"
    config.write_text(
        '[source]\npath = "events.jsonl"\n[subscriptions]\nstore = "sqlite:///people.db"\n'
        '[sink]\npath = "out"\n[policies.ann]\nk = 3\n'
    )
    store_path = tmp_path / "people.db"
    assert sorted((name, reason) for name, _, _, reason in problems([config])) == [
        ("events.jsonl", "event e2: field 'published_at' is missing"),
        ("people.db", "subscriber ann: prefers names unknown subscription s9"),
        ("run.toml", f"[policies.ann]: ann already has a policy in {store_path}; remove one"),
    ]
    files = [(file.path.name, file.kind, file.records) for file in review([config]).checked]
    assert files == [
        ("run.toml", "config", 0),
        ("people.db", "subscribers", 1),
        ("people.db", "subscriptions", 2),
        ("events.jsonl", "events", 2),
    ]


def test_a_source_of_spark_is_not_read_by_a_check(tmp_path):
    write(tmp_path, subscriptions=[S1])
    config = tmp_path / "run.toml"
    config.write_text(
        '[source]\nformat = "kafka"\n[subscriptions]\npath = "subscriptions.jsonl"\n'
        '[sink]\npath = "out"\n'
    )
    assert problems([config]) == []
    assert [file.kind for file in review([config]).checked] == ["config", "subscriptions"]


def test_an_attribute_that_is_content_and_that_no_event_has_is_a_problem(tmp_path):
    write(tmp_path, events=[EVENT], subscriptions=[S1 | {"where": "year = 3"}], subscribers=[ANN])
    config = tmp_path / "run.toml"
    config.write_text(
        '[source]\npath = "events.jsonl"\ncontent = ["year", "Year", "published_at"]\n'
        '[subscriptions]\npath = "subscriptions.jsonl"\n[subscribers]\npath = "subscribers.jsonl"\n'
        '[sink]\npath = "out"\n'
    )
    reason = "[source] content: no event has the attribute Year; did you mean year?"
    assert problems([config]) == [("run.toml", None, None, reason)]
