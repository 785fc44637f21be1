"""Records that cannot be read: skipped, logged once, and kept until they are corrected."""

from types import SimpleNamespace
from typing import Any

from tests.index_files.test_publisher import matched_names, subscribe

from tidings import Policy, Sliding, Subscriber
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults, SourceReader

GOOD = {"id": "s", "subscriber": "ann", "where": "x = 1"}
BAD = {"id": "s", "subscriber": "ann", "where": "ROUND THE CORNER"}


def records(*forms: Any) -> list[Any]:
    return [SimpleNamespace(form=form) for form in forms]


def everyone(_: str) -> bool:
    return True


def test_a_refused_record_is_logged_once_per_reason(caplog):
    reader = SourceReader(Defaults())
    for form in (BAD, BAD, {**BAD, "where": "x ="}):
        assert reader.read(records(form), everyone) == []
        assert list(reader.refused) == ["s"]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "skipping the record s" in caplog.text


def test_a_refused_record_is_forgotten_when_it_is_corrected_or_removed():
    reader = SourceReader(Defaults())
    for now in ([GOOD], []):
        reader.read(records(BAD), everyone)
        assert reader.refused["s"].record == BAD
        reader.read(records(*now), everyone)
        assert reader.refused == {}


def test_refused_records_of_other_owners_stay():
    reader = SourceReader(Defaults())
    other = {**BAD, "id": "t", "subscriber": "bob"}
    reader.read(records(BAD, other, {"id": "cy", "policy": {"k": 0}}), everyone)
    assert set(reader.refused) == {"s", "t", "cy"}
    [bundle] = reader.read(records(GOOD, other), {"ann", "cy"}.__contains__)
    assert bundle.name == "ann"
    assert set(reader.refused) == {"t"}


def test_defaults_apply_only_to_owners_without_a_policy():
    reader = SourceReader(Defaults({"ann": Policy(k=2)}, Policy(k=9)))
    own = Subscriber("cy", Policy(k=4)).to_dict()
    bundles = reader.read(records(own, GOOD, {**GOOD, "subscriber": "bob"}), everyone)
    policies = {bundle.name: bundle.subscriber.policy.k for bundle in bundles if bundle.subscriber}
    assert policies == {"ann": 2, "bob": 9, "cy": 4}


def test_a_publisher_skips_a_record_until_it_is_corrected(store, tmp_path):
    class Source:
        """A history in which one condition cannot be parsed."""

        def __getattr__(self, name):
            return getattr(store.history, name)

        def as_of(self, version=None):
            for entry in store.history.as_of(version):
                invalid = {"where": "ROUND THE CORNER"} if entry.id == "s-bob" else {}
                yield SimpleNamespace(form=dict(entry.form or {}) | invalid)

    subscribe(store, "ann")
    subscribe(store, "bob")
    with Publisher(tmp_path / "index", Source(), parts=2) as publisher:
        version = publisher.publish()
        assert list(publisher.refused) == ["s-bob"]
        assert "ROUND THE CORNER" in str(publisher.refused["s-bob"].record)
        assert matched_names(publisher.folder, version) == ["ann"]
        subscribe(store, "cy")
        publisher.publish()
        assert list(publisher.refused) == ["s-bob"]
    with Publisher(tmp_path / "index", Source(), parts=2) as publisher:
        version = publisher.publish()
        assert list(publisher.refused) == ["s-bob"]
        (refused,) = publisher.folder.manifest(version).refused
        assert refused[:3] == ("subscription", "s-bob", "bob")
        assert "ROUND THE CORNER" in refused.reason
        subscribe(store, "bob", k=3)
        assert matched_names(publisher.folder, publisher.publish()) == ["ann", "bob", "cy"]
        assert publisher.refused == {}


def test_records_refused_in_an_old_version_are_not_refused_now(store, tmp_path):
    subscribe(store, "ann")
    old = store.history.newest()

    class Source:
        """A history with one old version whose policies are invalid."""

        def __getattr__(self, name):
            return getattr(store.history, name)

        def as_of(self, version=None):
            invalid = {"policy": {"k": 0}} if version == old else {}
            for entry in store.history.as_of(version):
                yield SimpleNamespace(form=dict(entry.form or {}) | invalid)

    with Publisher(tmp_path / "index", Source()) as publisher:
        assert publisher.publish() == publisher.folder.pin("q", 0)
        assert set(publisher.refused) == {"ann", "s-ann"}
        subscribe(store, "ann", k=3)
        publisher.publish()
        assert publisher.refused == {}
    next(publisher.folder.path.glob("*-index.sealed")).unlink()
    with Publisher(tmp_path / "index", Source()) as publisher:
        assert publisher.publish() == 2
        assert publisher.refused == {}


def test_the_fingerprint_depends_on_the_source_and_the_defaults():
    one, other = Policy(k=1), Policy(k=1, window=Sliding(4))
    defaults = [
        Defaults(),
        Defaults(others=one),
        Defaults(others=other),
        Defaults({"ann": one}),
        Defaults({"bob": one}),
        Defaults({"ann": other}),
        Defaults({"ann": one, "bob": one}),
    ]
    fingerprints = {each.fingerprint(source) for each in defaults for source in ("a", "b")}
    assert len(fingerprints) == 2 * len(defaults)
    both = Defaults({"bob": one, "ann": one})
    assert both.fingerprint("a") == defaults[-1].fingerprint("a")
    assert [both.policy("ann"), both.policy("cy"), defaults[1].policy("cy")] == [one, Policy(), one]
    assert Defaults(others=None).policy("cy") is None


def test_a_refused_subscriber_gets_no_default_policy():
    reader = SourceReader(Defaults())
    [bundle] = reader.read(records(GOOD, {"id": "ann", "policy": {"k": 0}}), everyone)
    assert (bundle.name, bundle.subscriber) == ("ann", None)
