"""What is wrong in files, alone and against each other, is found with its place and its reason."""

import json

import pytest

from tidings import Event, Policy, Subscriber, Subscription
from tidings.app.check.detect_kind import kind_of
from tidings.app.check.review import review
from tidings.errors import InvalidForm
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


def found(paths):
    return [(each.path.name, each.line, each.id, each.reason) for each in review(paths).problems]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_a_file_holds_is_seen_from_its_fields(tmp_path, suffix):
    paths = {
        kind: tmp_path / (kind + suffix) for kind in ("events", "subscriptions", "subscribers")
    }
    write_events([Event("e1", {"policy": "x", "subscriber": "y"}, 0)], paths["events"])
    write_subscriptions([Subscription("s1", "ann", "year > 3")], paths["subscriptions"])
    write_subscribers([Subscriber("ann", Policy(k=2), [("s1", "s1b")])], paths["subscribers"])
    assert {kind: kind_of(path) for kind, path in paths.items()} == {kind: kind for kind in paths}


def test_the_first_records_may_tell_little(tmp_path):
    (path,) = write(tmp_path, people=["", "{", "3", {"id": "ann"}, {"id": "bob", "prefers": []}])
    assert kind_of(path) == "subscribers"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "the suffix of a file is one of .toml, .jsonl"),
        ("a.jsonl", b"", "this holds neither events"),
        ("a.json", b'{"id": 3}', "this holds neither events"),
        ("a.json", b"[", "Expecting value"),
        ("a.csv", b"\xff\xfe\x00", "invalid start byte"),
        ("a.parquet", b"x", "Parquet"),
        ("a.arrow", b"x", ""),
    ],
)
def test_a_file_of_no_kind_is_refused(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidForm) as error:
        kind_of(path)
    assert reason in str(error.value)
    assert [each.kind for each in review([path]).checked] == ["unknown"]


def test_good_files_have_no_problems(tmp_path):
    paths = write(tmp_path, people=[ANN], wishes=[S1], events=[EVENT])
    result = review(paths)
    assert result.problems == []
    assert [(each.path, each.kind, each.records) for each in result.checked] == list(
        zip(paths, ("subscribers", "subscriptions", "events"), (1, 1, 1), strict=True)
    )


def test_a_bad_record_is_named_by_its_line(tmp_path):
    bad = {"id": "s2", "subscriber": "ann", "where": "lower(genre) = 'drama'"}
    paths = write(tmp_path, wishes=["", S1, bad, "", "{"])
    (condition, no_json) = found(paths)
    assert condition[:3] == ("wishes.jsonl", 3, "s2")
    assert condition[3].startswith(
        "subscription s2: `lower(genre)` is not an attribute\n"
        "  lower(genre) = 'drama'\n  ^^^^^^^^^^^^\npossible: "
    )
    assert no_json[:3] == ("wishes.jsonl", 5, None)
    assert no_json[3].startswith("this is no JSON: Expecting property name")


def test_rows_of_csv_are_counted_without_the_header(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("id,published_at,year\ne1,0,1\ne2,0\ne3,soon,1\ne4,0,1\ne1,0,1\n")
    assert [each[1:3] for each in found([path])] == [(2, None), (3, "e3"), (5, "e1")]


def test_an_id_may_be_there_once(tmp_path):
    paths = write(tmp_path, a=["", EVENT], b=[EVENT], c=[S1, S1 | {"where": "year > 4"}])
    assert found(paths) == [
        ("b.jsonl", 1, "e1", f"event e1: the id is there already, in {tmp_path}/a.jsonl:2"),
        ("c.jsonl", 2, "s1", f"subscription s1: the id is there already, in {tmp_path}/c.jsonl:1"),
    ]


def test_subscriptions_need_their_subscriber(tmp_path):
    wishes, people = write(
        tmp_path,
        wishes=[S1, S1 | {"id": "s2", "subscriber": "bob"}, S1 | {"id": "s3", "subscriber": "cid"}],
        people=[ANN, {"id": "cid", "policy": {"k": 0}}],
    )
    assert found([wishes]) == []
    assert [each[1:] for each in found([wishes, people]) if each[0] == "wishes.jsonl"] == [
        (2, "s2", f"subscription s2: there is no subscriber bob in {people}"),
        (3, "s3", "subscription s3: its subscriber cid is refused"),
    ]


def test_preferences_are_over_ones_own_subscriptions_and_without_a_cycle(tmp_path):
    wishes, people = write(
        tmp_path,
        wishes=[S1, S1 | {"id": "s2", "subscriber": "bob"}],
        people=[
            ANN | {"prefers": [["s1", "s2"], ["s1", "s9"]]},
            {"id": "bob", "prefers": []},
            {"id": "cid", "prefers": [["a", "b"], ["b", "a"]]},
        ],
    )
    assert [each[3] for each in found([people, wishes])] == [
        "subscriber ann: prefers names s2, which belongs to bob",
        "subscriber ann: prefers names s9, and there is no such subscription",
        "subscriber cid: preferences form a cycle: a > b > a",
    ]
    assert len(found([people])) == 1


CONFIG = """
[source]
path = "events.jsonl"
[subscriptions]
path = "wishes.jsonl"
[subscribers]
path = "people.jsonl"
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
        ("ann", ["[policies.ann]: ann has the policy of", "there is no subscriber bob in"]),
        ("zed", ["[policies.zed]: no subscription has the sub", "there is no subscriber bob in"]),
    ],
)
def test_a_config_brings_its_files_and_its_policies(tmp_path, name, reasons):
    bobs = S1 | {"id": "s2", "subscriber": "bob"}
    files = write(tmp_path, events=[EVENT], wishes=[S1, bobs], people=[ANN])
    config = tmp_path / "run.toml"
    config.write_text(CONFIG.format(name=name))
    result = review([config, *files])
    assert len(result.problems) == len(reasons)
    for problem, reason in zip(result.problems, reasons, strict=True):
        assert reason in problem.reason
    assert [each.kind for each in result.checked] == [
        "config",
        "subscribers",
        "subscriptions",
        "events",
    ]


def test_a_broken_config_does_not_hide_the_other_files(tmp_path):
    (path,) = write(tmp_path, events=[EVENT, EVENT])
    config = tmp_path / "run.toml"
    config.write_text("[source]\n")
    problems = review([config, path]).problems
    assert [each.path for each in problems] == [config, path]
    assert problems[0].reason == "config: field 'subscriptions' is missing"


def test_a_table_with_a_column_that_means_nothing_is_one_problem(tmp_path):
    path = tmp_path / "wishes.csv"
    path.write_text("id,subscriber,where,colour\ns1,ann,year > 3,red\n")
    ((name, line, _, reason),) = found([path])
    assert (name, line) == ("wishes.csv", None)
    assert reason.startswith("unknown column colour; possible are id")


def test_the_store_of_a_config_is_checked_as_its_files_are(tmp_path):
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
    where = tmp_path / "people.db"
    nobody = f"there is no subscriber bob in {where} or [policies] of {config}"
    assert sorted((name, reason) for name, _, _, reason in found([config])) == [
        ("events.jsonl", "event e2: field 'published_at' is missing"),
        ("people.db", "subscriber ann: prefers names s9, and there is no such subscription"),
        ("people.db", f"subscription s2: {nobody}"),
        ("run.toml", f"[policies.ann]: ann has the policy of {where}; remove one"),
    ]
    holds = [(each.path.name, each.kind, each.records) for each in review([config]).checked]
    assert holds == [
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
    assert found([config]) == []
    assert [each.kind for each in review([config]).checked] == ["config", "subscriptions"]
