"""Records that cannot be read are passed over, told once, and kept for as long as it is so."""

from types import SimpleNamespace
from typing import Any

from tests.index_files.test_publisher import wants, who

from tidings import Policy, Subscriber
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults, SourceReader

GOOD = {"id": "s", "subscriber": "ann", "where": "x = 1"}
BAD = {"id": "s", "subscriber": "ann", "where": "ROUND THE CORNER"}


def entries(*forms: Any) -> list[Any]:
    return [SimpleNamespace(form=form) for form in forms]


def everybody(_: str) -> bool:
    return True


def test_a_refused_record_is_told_once_and_anew_for_another_reason(caplog):
    records = SourceReader(Defaults())
    for form in (BAD, BAD, {**BAD, "where": "x ="}):
        assert records.read(entries(form), everybody) == []
        assert list(records.refused) == ["s"]
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 2
    assert "skipping the record s" in caplog.text


def test_what_was_refused_is_forgotten_when_it_is_mended_or_gone():
    records = SourceReader(Defaults())
    for now in ([GOOD], []):
        records.read(entries(BAD), everybody)
        assert records.refused["s"].record == BAD
        records.read(entries(*now), everybody)
        assert records.refused == {}


def test_what_is_not_read_again_stays_refused():
    records = SourceReader(Defaults())
    other = {**BAD, "id": "t", "subscriber": "bob"}
    records.read(entries(BAD, other, {"id": "cy", "policy": {"k": 0}}), everybody)
    assert set(records.refused) == {"s", "t", "cy"}
    [member] = records.read(entries(GOOD, other), {"ann", "cy"}.__contains__)
    assert member.name == "ann"
    assert set(records.refused) == {"t"}


def test_owners_have_a_default_policy_and_subscribers_their_own():
    records = SourceReader(Defaults({"ann": Policy(k=2)}, Policy(k=9)))
    own = Subscriber("cy", Policy(k=4)).to_dict()
    found = records.read(entries(own, GOOD, {**GOOD, "subscriber": "bob"}), everybody)
    policies = {each.name: each.subscriber.policy.k for each in found if each.subscriber}
    assert policies == {"ann": 2, "bob": 9, "cy": 4}


def test_a_publisher_passes_over_what_it_cannot_read_until_it_is_mended(store, tmp_path):
    class Source:
        """A history in which one condition is of another time."""

        def __getattr__(self, name):
            return getattr(store.history, name)

        def as_of(self, version=None):
            for entry in store.history.as_of(version):
                spoilt = {"where": "ROUND THE CORNER"} if entry.id == "s-bob" else {}
                yield SimpleNamespace(form=dict(entry.form or {}) | spoilt)

    wants(store, "ann")
    wants(store, "bob")
    with Publisher(tmp_path / "index", Source(), parts=2) as publisher:
        version = publisher.publish()
        assert list(publisher.refused) == ["s-bob"]
        assert "ROUND THE CORNER" in str(publisher.refused["s-bob"].record)
        assert who(publisher.folder, version) == ["ann"]
        wants(store, "cy")
        publisher.publish()
        assert list(publisher.refused) == ["s-bob"]
        wants(store, "bob", k=3)
        assert who(publisher.folder, publisher.publish()) == ["ann", "bob", "cy"]
        assert publisher.refused == {}


def test_what_could_not_be_read_of_an_old_version_is_no_matter_of_now(store, tmp_path):
    wants(store, "ann")
    old = store.history.newest()

    class Source:
        """A history of which one old version cannot be read."""

        def __getattr__(self, name):
            return getattr(store.history, name)

        def as_of(self, version=None):
            spoilt = {"policy": {"k": 0}} if version == old else {}
            for entry in store.history.as_of(version):
                yield SimpleNamespace(form=dict(entry.form or {}) | spoilt)

    with Publisher(tmp_path / "index", Source()) as publisher:
        assert publisher.publish() == publisher.folder.pin("q", 0)
        assert set(publisher.refused) == {"ann", "s-ann"}
        wants(store, "ann", k=3)
        publisher.publish()
        assert publisher.refused == {}
    next(publisher.folder.path.glob("*-index.sealed")).unlink()
    with Publisher(tmp_path / "index", Source()) as publisher:
        assert publisher.publish() == 2
        assert publisher.refused == {}
