"""Records of the catalogue: drafts with equal text, and entries that note damage."""

from typing import Any

import pytest

from tidings import Policy, Quota, Subscriber, Subscription, TidingsError
from tidings.errors import InvalidForm, StoreError
from tidings.store.records import CatalogueEntry, check_kind, make_draft, read_entries, read_entry


def test_an_object_and_its_form_have_the_same_draft() -> None:
    subscriber = Subscriber("ann", Policy(k=2))
    subscription = Subscription("s", "ann", "x = 1", prefrank=0.5)
    for record, kind in ((subscriber, "subscriber"), (subscription, "subscription")):
        draft = make_draft(record)
        assert draft == make_draft(record.to_dict())
        assert (draft.kind, draft.id, draft.subscriber) == (kind, record.id, "ann")


def test_an_entry_returns_its_record() -> None:
    subscriber = Subscriber("ann", Policy(k=2, rules=["quiet", Quota(5, zone="Europe/Athens")]))
    text = make_draft(subscriber).form
    assert read_entry(3, "subscriber", "ann", text).record == subscriber
    assert read_entry(4, "subscriber", "ann", None).record is None


@pytest.mark.parametrize(
    ("text", "damage"), [("{", "is not JSON"), ("[]", "is not a JSON object"), (7, "is not JSON")]
)
def test_a_damaged_form_is_noted_in_its_entry(text: Any, damage: str) -> None:
    entry = read_entry(1, "subscription", "s", text)
    assert entry.damage is not None
    with pytest.raises(InvalidForm, match=f"subscription s: its form in the store {damage}"):
        entry.load()
    with pytest.raises(TidingsError):
        CatalogueEntry(1, "subscription", "s", entry.form).load()  # no reader accepts it


def test_rows_with_wrong_cells_are_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    rows: list[tuple[Any, ...]] = [
        (1, "subscriber", "ann", None),
        ("1", "subscriber", "bob", None),
        (2, "unknown", "cy", None),
        (3, "subscription", None, None),
    ]
    assert [entry.id for entry in read_entries(rows)] == ["ann"]
    assert len(caplog.records) == 3


def test_an_unknown_kind_is_refused() -> None:
    assert check_kind("subscriber") == "subscriber"
    with pytest.raises(StoreError, match="the kind of a record"):
        check_kind("people")
