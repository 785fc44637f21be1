"""The contract of stores: the same answers as plain dicts, in any order of operations."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.store.appender import delivery
from tests.store.model import ModelStore
from tests.store.people import NAMES, delivered, deliveries, ids, kind_of, names, records
from tests.store.server import clear

from tidings import (
    BadRecord,
    DeadLetter,
    Delivery,
    Event,
    Policy,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
    loads_event,
)
from tidings.errors import StoreError, VersionGone
from tidings.formats.arrow import deliveries_to_table
from tidings.store import AppendResult, Inbox, Store, open_store

KINDS = ["subscriber", "subscription"]
QUERIES = st.sampled_from(["q1", "q2"])
BATCHES = st.integers(0, 5)


class StoreMachine(RuleBasedStateMachine):
    """Applies every operation to a store and to the model, in any order, with restarts."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.store: Store = open_store(address)
        self.model = ModelStore()
        self.at = 0

    def teardown(self) -> None:
        self.store.close()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = open_store(self.address)

    @rule(form=records)
    def put(self, form: dict[str, Any]) -> None:
        there = self.model.now.get((kind_of(form), form["id"]))
        if there is not None and there != form:
            with pytest.raises(TidingsError, match="already exists; replace it"):
                self.store.catalogue.put(form)
        else:
            self.model.write(kind_of(form), form)
            assert self.store.catalogue.put(form) == self.model.version

    @rule(form=records)
    def replace(self, form: dict[str, Any]) -> None:
        if (kind_of(form), form["id"]) not in self.model.now:
            with pytest.raises(TidingsError, match=r"there is no .* to replace"):
                self.store.catalogue.replace(form)
        else:
            self.model.write(kind_of(form), form)
            assert self.store.catalogue.replace(form) == self.model.version

    @rule(forms=st.lists(records, max_size=6))
    def load(self, forms: list[dict[str, Any]]) -> None:
        last = {(kind_of(form), form["id"]): form for form in forms}
        for (kind, _), form in last.items():
            self.model.write(kind, form)
        seen: list[int] = []
        assert self.store.catalogue.load(forms, seen.append) == self.model.version
        assert seen == ([len(forms)] if forms else [])

    @rule(
        key=st.one_of(
            st.tuples(st.just("subscriber"), names), st.tuples(st.just("subscription"), ids)
        )
    )
    def remove(self, key: tuple[str, str]) -> None:
        kind, name = key
        assert self.store.catalogue.remove(kind, name) == self.model.remove(kind, name)

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(0, self.model.version + 1))
        assert self.store.history.compact(before) == self.model.compact(before)

    @rule(query=QUERIES, step=st.integers(0, 1))
    def pin(self, query: str, step: int) -> None:
        batch, version = self.model.pins.get(query, (0, self.model.version))
        if step:
            batch, version = batch + 1, self.model.version
        self.model.pins[query] = (batch, version)
        assert self.store.history.pin(query, batch) == version

    @rule(query=QUERIES)
    def unpin(self, query: str) -> None:
        self.store.history.unpin(query)
        self.model.pins.pop(query, None)

    @rule(
        query=QUERIES,
        batch=BATCHES,
        given=st.lists(deliveries, max_size=8),
        late=st.lists(st.integers(0, 3), max_size=2),
        dead=st.lists(st.integers(0, 3), max_size=2),
        columns=st.booleans(),
    )
    def append(
        self,
        query: str,
        batch: int,
        given: list[Delivery],
        late: list[int],
        dead: list[int],
        columns: bool,
    ) -> None:
        before = (query, batch) in self.model.batches
        late_events = [Event(f"late{n}", {"n": n}, n) for n in late]
        letters = [DeadLetter({"n": n}, "no good") for n in dead]
        room = self.store.notifications
        if columns:
            table = deliveries_to_table(given)
            found = room.append_columns(query, batch, table, late=late_events, dead=letters)
        else:
            found = room.append(query, batch, given, late=late_events, dead=letters)
        expected = self.model.append(
            query, batch, given, [e.to_dict() for e in late_events], [{"n": n} for n in dead]
        )
        assert (found.delivered, found.repeated, found.late, found.dead) == expected
        assert found.skipped == before

    @rule(name=names, data=st.data())
    def mark_read(self, name: str, data: st.DataObject) -> None:
        last = len(self.model.inboxes.get(name, []))
        upto = data.draw(st.integers(0, last))
        self.model.read[name] = max(upto, self.model.read.get(name, 0))
        inbox = self.store.notifications.mark_read(name, upto)
        assert (inbox.last, inbox.read) == (last, self.model.read[name])
        with pytest.raises(StoreError, match=f"has no notification {last + 1}; the last is {last}"):
            self.store.notifications.mark_read(name, last + 1)

    @rule(before=st.integers(0, 9), keep=st.one_of(st.none(), st.integers(0, 4)))
    def prune(self, before: int, keep: int | None) -> None:
        forget = None if keep is None else before - keep
        kept = None if keep is None else f"{keep / 1e6:.6f}s"
        pruned = self.store.notifications.prune(before / 1e6, kept)
        assert pruned == self.model.prune(before, forget)

    @rule(kind=st.sampled_from(["late", "dead"]), limit=st.integers(1, 3))
    def take(self, kind: str, limit: int) -> None:
        self.at += 1
        expected = self.model.waiting(kind)[:limit]
        taken = self.store.letters.take(kind, self.at, limit)
        assert [letter.record for letter in taken] == [letter[1] for letter in expected]
        assert all(letter.taken_us == self.at * 1_000_000 for letter in taken)
        for letter in expected:
            letter[2] = True

    @rule(kind=st.sampled_from(["late", "dead"]))
    def give_back(self, kind: str) -> None:
        taken = [letter for letter in self.store.letters.page(kind) if letter.taken_us is not None]
        assert self.store.letters.give_back(each.id for each in taken) == len(taken)
        for letter in self.model.letters:
            letter[2] = letter[2] and letter[0] != kind

    @invariant()
    def the_catalogue_is_the_same(self) -> None:
        catalogue, now = self.store.catalogue, self.model.now
        assert catalogue.version() == self.model.version
        assert {(e.kind, e.id): e.form for e in self.store.history.as_of()} == now
        for kind in KINDS:
            found = [entry.form for entry in catalogue.page(kind)]
            assert found == [form for key, form in sorted(now.items()) if key[0] == kind]
        name = NAMES[self.model.version % len(NAMES)]
        owned = [form for _, form in sorted(now.items()) if form.get("subscriber") == name]
        assert [e.form for e in catalogue.page("subscription", subscriber=name)] == owned
        one = catalogue.get("subscriber", name)
        assert (one and one.form) == now.get(("subscriber", name))

    @invariant()
    def the_history_is_the_same(self) -> None:
        history, oldest = self.store.history, self.model.compacted
        for version in {oldest, (oldest + self.model.version) // 2}:
            entries = history.as_of(version)
            assert {(e.kind, e.id): e.form for e in entries} == self.model.at(version)
            changed = [(e.kind, e.id, e.form) for e in history.changes(version)]
            assert changed == self.model.log[version:]
            self.owners_are_the_same(version)
        if oldest:
            with pytest.raises(VersionGone, match=f"the oldest kept is {oldest}"):
                history.changes(oldest - 1)

    def owners_are_the_same(self, version: int) -> None:
        """Compare the subscribers that changed since a version, and their records then and now."""
        history, newest = self.store.history, self.model.version
        assert history.newest() == newest
        before, touched = self.model.at(version), set[str]()
        for at in range(version, newest):
            kind, name, form = self.model.log[at]
            for each in (self.model.at(at).get((kind, name)), form):
                touched |= {str(each.get("subscriber", each["id"]))} if each else set()
        assert history.touched(version, newest) == sorted(touched)
        for then, now in ((version, before), (newest, self.model.now)):
            owned = {(e.kind, e.id): e.form for e in history.owned(sorted(touched), then)}
            assert owned == {
                key: form
                for key, form in now.items()
                if form.get("subscriber", form["id"]) in touched
            }

    @invariant()
    def the_notifications_are_the_same(self) -> None:
        for name in NAMES:
            found = self.store.notifications.after(name)
            expected = self.model.delivered(name)
            assert [(d.sequence, d.event, d.delivered_us) for d in found] == expected
            inbox = self.store.notifications.inbox(name)
            last = len(self.model.inboxes.get(name, []))
            assert (inbox.last, inbox.read) == (last, self.model.read.get(name, 0))

    @invariant()
    def the_letters_are_the_same(self) -> None:
        for kind in ("late", "dead"):
            found = [letter.record for letter in self.store.letters.page(kind)]
            assert found == [letter[1] for letter in self.model.letters if letter[0] == kind]
            waiting = len(self.model.waiting(kind))
            assert self.store.letters.count(kind) == waiting
            assert self.store.letters.count(kind, taken=True) == len(found) - waiting


def run_machine(place: Callable[[], str], examples: int) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(place()),  # type: ignore[arg-type]  # any maker will do
        settings=settings(max_examples=examples, stateful_step_count=40, deadline=None),
    )


@pytest.mark.slow
def test_sqlite_is_the_model(tmp_path_factory: pytest.TempPathFactory) -> None:
    run_machine(lambda: str(tmp_path_factory.mktemp("store") / "tidings.db"), examples=30)


def test_postgres_is_the_model(postgres_address: str) -> None:
    run_machine(lambda: clear(postgres_address), examples=10)


def drama(name: str, owner: str = "addison", **more: Any) -> Subscription:
    return Subscription(name, owner, where="genre = 'drama'", **more)


def test_a_record_reads_back_as_it_was(address: str) -> None:
    person = Subscriber("addison", Policy(k=2, window=Sliding(4)), [("s1", "s2")])
    weighted = Subscription("s2", "addison", any=[["x = 'a'", 0.4], ["y <= 16", 0.7, "inactive"]])
    with open_store(address) as store:
        assert store.catalogue.put(person, drama("s1", prefrank=0.8), weighted) == 3
        entries = list(store.history.as_of())
    assert [entry.record for entry in entries] == [person, drama("s1", prefrank=0.8), weighted]
    assert [entry.version for entry in entries] == [1, 2, 3]


def test_a_removal_is_an_entry_without_a_record(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put(drama("s1"))
        assert store.catalogue.remove("subscription", "s1")
        removal = store.history.changes(1)[0]
        assert (removal.version, removal.id, removal.record) == (2, "s1", None)
        assert store.catalogue.get("subscription", "s1") is None


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"id": "s1", "subscriber": "a", "where": "genre ="}, "subscription s1"),
        (
            {"id": "s1", "subscriber": "a", "where": "x = 1", "prefrank": 7},
            "between 0 and 1, not 7",
        ),
        ({"id": "s1", "subscriber": "a"}, "either `where` or `any`"),
        ({"id": "a", "policy": {"k": 0}}, "k is a whole number of at least 1, not 0"),
        ({"id": "a", "prefers": [["s1", "s2"], ["s2", "s1"]]}, "s1"),
        ({"id": "x" * 1001}, "an id in a store is at most 1000 bytes long"),
        ({"id": "s", "subscriber": "x" * 1001, "where": "x = 1"}, "a subscriber is at most 1000"),
        ("s1", "is an object with named fields, not 's1'"),
    ],
)
def test_a_bad_record_is_refused_and_nothing_is_written(form: Any, says: str, address: str) -> None:
    with open_store(address) as store:
        for verb in (store.catalogue.put, store.catalogue.replace):
            with pytest.raises(TidingsError) as refused:
                verb(drama("s0"), form)
            assert says in str(refused.value)
        assert store.catalogue.version() == 0


def test_one_refused_record_refuses_the_call(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put(drama("s1"))
        with pytest.raises(TidingsError, match="subscription 's1' already exists"):
            store.catalogue.put(drama("s2"), drama("s1", prefrank=0.5))
        with pytest.raises(TidingsError, match="subscription 's2' is listed twice"):
            store.catalogue.put(drama("s2"), drama("s2"))
        assert [entry.id for entry in store.catalogue.page("subscription")] == ["s1"]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write and read in chunks of a hundred."""
    monkeypatch.setattr("tidings.store.catalogue._CHUNK", 100)
    monkeypatch.setattr("tidings.store.history._PAGE", 100)


@pytest.mark.usefixtures("small_pages")
def test_a_load_in_chunks_reports_progress_and_can_be_repeated(address: str) -> None:
    many = [drama(f"s{n:03d}", f"u{n % 7}") for n in range(205)]
    with open_store(address) as store:
        for _ in range(2):
            seen: list[int] = []
            assert store.catalogue.load(iter(many), seen.append) == 205
            assert seen == [100, 200, 205]
        assert [entry.id for entry in store.history.as_of()] == [each.id for each in many]
        found, after = [], ""
        while page := store.catalogue.page("subscription", "u3", after, limit=10):
            found += [entry.id for entry in page]
            after = found[-1]
        assert found == [each.id for each in many if each.subscriber == "u3"]


@pytest.mark.usefixtures("small_pages")
def test_a_refused_record_stops_a_load_before_its_chunk(address: str) -> None:
    many: list[Any] = [drama(f"s{n:03d}") for n in range(101)]
    with open_store(address) as store:
        with pytest.raises(TidingsError, match="subscription bad"):
            store.catalogue.load([*many, {"id": "bad", "subscriber": "a", "where": "?"}])
        assert store.catalogue.version() == 100


@pytest.mark.usefixtures("small_pages")
def test_a_snapshot_that_is_being_read_does_not_change(address: str) -> None:
    with open_store(address) as store:
        version = store.catalogue.load(drama(f"s{n:03d}") for n in range(101, 320))
        reading = store.history.as_of(version)
        first = next(reading)
        store.catalogue.replace(drama("s305", prefrank=0.5))
        store.catalogue.remove("subscription", "s310")
        store.catalogue.put(drama("s999"))
        rest = list(reading)
        assert [e.id for e in (first, *rest)] == [f"s{n:03d}" for n in range(101, 320)]
        assert all(entry.record == drama(entry.id) for entry in rest)
        reading = store.history.as_of(version)
        next(reading)
        store.history.compact(version + 1)
        with pytest.raises(VersionGone, match=f"version {version} is gone"):
            list(reading)


def test_a_pinned_version_outlives_compaction(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put(drama("s1"))
        assert store.history.pin("q", 7) == 1
        store.catalogue.replace(drama("s1", prefrank=0.5))
        assert store.history.pin("q", 7) == 1
        assert store.history.compact(2) == 1
        assert [entry.record for entry in store.history.as_of(1)] == [drama("s1")]
        assert store.history.pin("q", 8) == 2
        assert store.history.compact(2) == 2
        with pytest.raises(StoreError, match=r"batch 7 of query q is no longer pinned; .* is 8"):
            store.history.pin("q", 7)


def test_removing_a_subscriber_removes_its_subscriptions(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put(drama("s1"), drama("s2", "bob"), drama("s3"), {"id": "addison"})
        assert store.catalogue.remove("subscriber", "bob") is False
        assert store.catalogue.remove("subscriber", "addison") is True
        gone = [(entry.kind, entry.id) for entry in store.history.changes(4)]
        assert gone == [("subscription", "s1"), ("subscription", "s3"), ("subscriber", "addison")]
        assert [entry.id for entry in store.history.as_of()] == ["s2"]


def test_unknown_versions_and_kinds_are_refused(address: str) -> None:
    with open_store(address) as store:
        with pytest.raises(StoreError, match="there is no version 1 yet; the newest is 0"):
            store.history.changes(1)
        with pytest.raises(StoreError, match="at least 0, not -1"):
            store.history.changes(-1)
        with pytest.raises(StoreError, match="one of 'subscriber', 'subscription', not 'policy'"):
            store.catalogue.get("policy", "p")
        with pytest.raises(StoreError, match="one of 'late', 'dead', not 'lost'"):
            store.letters.take("lost", at=0)
        with pytest.raises(StoreError, match="a batch is at most 9223372036854775807"):
            store.notifications.append("q", 2**63)


def test_a_delivery_reads_back_with_the_sequence_of_the_store(address: str) -> None:
    one = delivery("addison", "e1", at_us=5, sequence=40)
    with open_store(address) as store:
        store.notifications.append("q", 0, [one, delivery("addison", "e2"), delivery("bob", "e1")])
        store.notifications.append("q", 1, [delivery("addison", "e3")])
        found = store.notifications.newest("addison")
        assert [(d.sequence, d.event) for d in found] == [(3, "e3"), (2, "e2"), (1, "e1")]
        assert found[-1] == replace(one, sequence=1)
        assert store.notifications.newest("addison", limit=1) == found[:1]
        assert store.notifications.after("addison", 1, limit=1) == [found[1]]
        assert store.notifications.delivered_events("addison", 2) == {"e2", "e3"}
        assert store.notifications.inbox("addison") == Inbox(last=3, read=0)
        assert store.notifications.mark_read("addison", 2).unread == 1
        assert store.notifications.last_batch("q") == 1
        assert store.notifications.last_batch("other") is None


def test_a_read_mark_never_goes_back(address: str) -> None:
    with open_store(address) as store:
        store.notifications.append("q", 0, [delivery("a", "e1"), delivery("a", "e2")])
        assert store.notifications.mark_read("a", 2) == Inbox(last=2, read=2)
        assert store.notifications.mark_read("a", 1) == Inbox(last=2, read=2)
        with pytest.raises(StoreError, match="'a' has no notification 3; the last is 2"):
            store.notifications.mark_read("a", 3)


def test_a_repeated_batch_is_skipped_and_returns_the_first_result(address: str) -> None:
    with open_store(address) as store:
        first = store.notifications.append("q", 4, [delivery("a", "e1"), delivery("a", "e1")])
        assert first == AppendResult(delivered=1, repeated=1)
    with open_store(address) as store:
        again = store.notifications.append("q", 4, [delivery("a", "e2")], dead=[DeadLetter(1, "x")])
        assert again == replace(first, skipped=True)
        assert delivered(store, "a") == [(1, "e1")]
        assert store.letters.count("dead") == 0


def test_an_event_is_not_delivered_again_by_another_query(address: str) -> None:
    with open_store(address) as store:
        store.notifications.append("q", 0, [delivery("a", "e1"), delivery("a", "e2")])
        again = [delivery("a", "e2"), delivery("a", "e3"), delivery("b", "e2")]
        assert store.notifications.append("r", 0, again) == AppendResult(delivered=2, repeated=1)
        assert delivered(store, "a") == [(1, "e1"), (2, "e2"), (3, "e3")]


def test_a_pruned_event_is_delivered_again_only_after_its_key_is_deleted(address: str) -> None:
    with open_store(address) as store:
        notifications = store.notifications
        notifications.append(
            "q", 0, [delivery("a", "e1", 1_000_000), delivery("a", "e2", 9_000_000)]
        )
        assert notifications.prune(before=9) == 1
        assert notifications.append("q", 1, [delivery("a", "e1")]).repeated == 1
        assert notifications.prune(before=9, keep_keys="8s") == 0
        assert notifications.append("q", 2, [delivery("a", "e1")]).repeated == 1
        assert notifications.prune(before=9, keep_keys="7s") == 0
        assert notifications.append("q", 3, [delivery("a", "e1")]).delivered == 1
        assert delivered(store, "a") == [(2, "e2"), (3, "e1")]


def test_a_sequence_continues_after_everything_was_pruned(address: str) -> None:
    with open_store(address) as store:
        store.notifications.append("q", 0, [delivery("a", "e1", 5), delivery("a", "e2", 5)])
        store.notifications.mark_read("a", 1)
        assert store.notifications.prune(before=1) == 2
        assert store.notifications.newest("a") == []
        assert store.notifications.inbox("a") == Inbox(last=2, read=1)
        store.notifications.append("q", 1, [delivery("a", "e3", 5)])
        assert delivered(store, "a") == [(3, "e3")]


def test_a_sequence_does_not_go_back_after_its_end_was_pruned(address: str) -> None:
    with open_store(address) as store:
        store.notifications.append("q", 0, [delivery("a", "e1", 5), delivery("a", "e2", 1)])
        assert store.notifications.prune(before=3e-6) == 1
        assert store.notifications.append("q", 1, [delivery("a", "e1", 5)]).repeated == 1
        assert store.notifications.inbox("a") == Inbox(last=2)
        store.notifications.append("q", 2, [delivery("a", "e3", 5)])
        assert delivered(store, "a") == [(1, "e1"), (3, "e3")]


def test_batches_that_are_no_longer_listed_count_as_written(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.store.notifications.BATCHES_KEPT", 3)
    with open_store(address) as store:
        for number in range(10):
            store.notifications.append("q", number)
        store.notifications.append("few", 5)
        store.notifications.prune(before=0)
        listed = store.database.read(
            lambda s: s.rows("SELECT query, batch FROM batches ORDER BY 1, 2")
        )
        assert listed == [("few", 5), ("q", 7), ("q", 8), ("q", 9)]
        assert store.notifications.append("q", 2, [delivery("a", "e1")]) == AppendResult(
            skipped=True
        )
        assert store.notifications.append("few", 4, [delivery("a", "e1")]).delivered == 1


def test_a_delivery_that_no_database_can_hold_becomes_a_dead_letter(address: str) -> None:
    poison = delivery("a", "e" * 1001)
    with open_store(address) as store:
        found = store.notifications.append("q", 0, [delivery("a", "e1"), poison])
        assert found == AppendResult(delivered=1, dead=1)
        letter = store.letters.page("dead")[0]
        assert letter.record == poison.to_dict()
        assert letter.reason.startswith("the id of an event is at most 1000 bytes long")
    assert letter.to_dict()["taken_at"] is None


def test_letters_keep_any_record_with_its_query_and_batch(address: str) -> None:
    odd = {"x": float("nan"), "text": "\0\x1a\ud800", "when": Path("a")}
    late = Event("e1", {"n": 1}, 0)
    with open_store(address) as store:
        store.notifications.append("q", 3, late=[late], dead=[BadRecord(odd, "odd", 7)])
        dead = store.letters.page("dead")[0]
        assert dead.record == {"x": "nan", "text": "\0\x1a\\ud800", "when": "a"}
        assert (dead.reason, dead.query, dead.batch, dead.taken_us) == ("odd", "q", 3, None)
        kept = store.letters.page("late")[0]
        assert loads_event(kept.record) == late
        assert kept.reason == "published before the watermark"


def test_taken_letters_stay_and_can_be_given_back(address: str) -> None:
    with open_store(address) as store:
        store.notifications.append("q", 0, dead=[DeadLetter(n, "x") for n in range(5)])
        first, second = (store.letters.take("dead", at=60, limit=2) for _ in range(2))
        assert [each.record for each in (*first, *second)] == [0, 1, 2, 3]
        assert first[0].to_dict()["taken_at"] == "1970-01-01T00:01:00Z"
        assert store.letters.give_back([second[0].id, 99]) == 1
        assert [letter.record for letter in store.letters.take("dead", at=61)] == [2, 4]
        assert [letter.record for letter in store.letters.page("dead", after=first[1].id)] == [
            2,
            3,
            4,
        ]
        assert (store.letters.count("dead"), store.letters.count("dead", taken=True)) == (0, 5)


def test_no_two_takers_get_the_same_letter(address: str) -> None:
    with open_store(address) as store, ThreadPoolExecutor(4) as pool:
        store.notifications.append("q", 0, dead=[DeadLetter(n, "x") for n in range(60)])
        taken: list[Any] = []
        while store.letters.count("dead"):
            for found in pool.map(lambda n: store.letters.take("dead", at=n, limit=5), range(4)):
                taken += [each.record for each in found]
        assert sorted(taken) == list(range(60))


def test_threads_share_a_store(address: str) -> None:
    with open_store(address) as store, ThreadPoolExecutor(6) as pool:
        batches = [[delivery(f"u{n % 3}", f"e{n}-{b}") for n in range(30)] for b in range(12)]
        list(pool.map(lambda b: store.notifications.append(f"q{b % 4}", b, batches[b]), range(12)))
        list(pool.map(lambda n: store.catalogue.put(drama(f"s{n}")), range(30)))
        for name in ("u0", "u1", "u2"):
            found = delivered(store, name)
            assert [sequence for sequence, _ in found] == list(range(1, 121))
            assert len({event for _, event in found}) == 120
        assert [entry.version for entry in store.history.changes(0)] == list(range(1, 31))


def test_a_store_has_a_unique_and_permanent_id(address: str, tmp_path: Path) -> None:
    with open_store(address) as store:
        drawn = store.history.store_id()
        store.catalogue.put(Subscriber("ann"))
        store.history.compact(store.history.newest())
    with open_store(address) as again, open_store(tmp_path / "another.db") as another:
        assert again.history.store_id() == drawn
        assert another.history.store_id() != drawn


def test_a_closed_store_is_reported(address: str) -> None:
    store = open_store(address)
    store.close()
    with pytest.raises(StoreError, match="is closed; open it again"):
        store.catalogue.version()
