"""A folder with a config, its subscriptions and its events."""

import json

import pytest


def event(name, published_at, **attributes):
    return {"id": name, "published_at": published_at, "attributes": attributes}


def write(path, *forms):
    path.write_text("".join(json.dumps(form) + "\n" for form in forms))


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two files of events, some of them late, duplicate or broken."""
    events = [event("e1", 0, year=1), event("e2", 60, year=2), event("e3", 120, year=3)]
    write(tmp_path / "1.jsonl", *events)
    late, duplicate = event("e0", 30, year=9), event("e3", 180, year=9)
    write(tmp_path / "2.jsonl", late, duplicate, {"id": "e4"}, event("e5", 240, year=9))
    write(
        tmp_path / "subscriptions.jsonl",
        {"id": "s1", "subscriber": "ann", "where": "year >= 2"},
        {"id": "s2", "subscriber": "bob", "where": "year >="},
        {"id": "s3", "subscriber": "bob", "where": "year >= 3"},
        {"id": "s1", "subscriber": "bob", "where": "year >= 4"},
    )
    (tmp_path / "run.toml").write_text(
        'engine = "local"\n[source]\npath = "[0-9].jsonl"\n[subscriptions]\n'
        'path = "subscriptions.jsonl"\n[sink]\npath = "out"\nformat = "jsonl"\n'
    )
    return tmp_path
