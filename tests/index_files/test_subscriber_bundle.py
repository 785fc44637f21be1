"""Bundles: fingerprints of their policies, and files that read back equal or are refused."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.index_files.test_overlay_matcher import groups

from tidings import Policy, Sliding, Subscriber, Subscription
from tidings.compiled.array_file import Damaged, Writer
from tidings.index_files import mapped_file, subscriber_bundle
from tidings.index_files.subscriber_bundle import (
    SubscriberBundle,
    any_counts_published,
    bundle_subscribers,
    fingerprint,
    read_bundles,
    write_bundles,
)


def test_bundles_are_in_order_of_name_and_may_lack_a_subscriber() -> None:
    bob, ann = Subscriber("bob"), Subscriber("ann")
    first, second = (Subscription(f"s{n}", "cy", "x = 1") for n in range(2))
    assert bundle_subscribers([bob, ann], [first, second]) == [
        SubscriberBundle("ann", ann),
        SubscriberBundle("bob", bob),
        SubscriberBundle("cy", None, [first, second]),
    ]


def test_only_some_windows_count_published_events() -> None:
    counting = Subscriber("ann", Policy(window=Sliding(4, count="published")))
    other = Subscriber("bob", Policy(window=Sliding(4)))
    assert any_counts_published(bundle_subscribers([counting, other], []))
    assert not any_counts_published(bundle_subscribers([other], []))


def test_a_fingerprint_depends_on_names_and_policies() -> None:
    ann, bob = Subscriber("ann", Policy(k=1)), Subscriber("bob", Policy(k=1))
    other = Subscriber("ann", Policy(k=2))
    ruled = Subscriber("ann", Policy(k=1, rules=["quiet"]))
    groups: tuple[list[Subscriber], ...] = ([], [ann], [bob], [other], [ruled], [ann, bob])
    assert len({fingerprint(group) for group in groups}) == 6
    assert fingerprint([ann]) == fingerprint([Subscriber("ann", Policy(k=1))])


def through_file(writer: Writer, path: Path) -> list[SubscriberBundle]:
    """Return the bundles that a file holds."""
    mapped_file.write(path, mapped_file.ARCHIVE, writer)
    return list(read_bundles(mapped_file.read(path, mapped_file.ARCHIVE)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive") / "a.sealed"


@given(bundles=groups)
def test_bundles_read_back_from_chunks_of_any_size(
    path: Path, bundles: list[SubscriberBundle]
) -> None:
    for size in (1, 3, 10_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subscriber_bundle, "CHUNK_RECORDS", size)
            writer = Writer()
            write_bundles(writer, bundles)
        assert through_file(writer, path) == bundles


FAULTS: dict[str, Callable[[Any], object]] = {
    "an unknown policy": lambda form: form["members"][0].__setitem__(1, 7),
    "a negative policy": lambda form: form["members"][0].__setitem__(1, -1),
    "an empty name": lambda form: form["members"][0].__setitem__(0, ""),
    "an unknown owner": lambda form: form["subscriptions"][0].__setitem__(0, 5),
    "an unknown operator": lambda form: form["subscriptions"][0][4][0][0].__setitem__(1, "~"),
    "an operand of another type": lambda form: form["subscriptions"][0][4][0][0].__setitem__(3, 1),
    "a missing field": lambda form: form.pop("policies"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_forged_chunk_is_refused(tmp_path: Path, fault: str) -> None:
    writer = Writer()
    subscription = Subscription("s", "ann", "genre = 'drama'")
    write_bundles(writer, [SubscriberBundle("ann", Subscriber("ann"), (subscription,))])
    form = json.loads(zlib.decompress(writer.arrays["chunks"].tobytes()))
    FAULTS[fault](form)
    chunk = zlib.compress(json.dumps(form).encode())
    writer.array("ends", np.array([0, len(chunk)]))
    writer.array("chunks", np.frombuffer(chunk, np.uint8))
    with pytest.raises(Damaged, match=r"a\.sealed is damaged: chunks: "):
        through_file(writer, tmp_path / "a.sealed")


def test_a_truncated_chunk_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    write_bundles(writer, [SubscriberBundle("ann", Subscriber("ann"))])
    chunk = writer.arrays["chunks"][:-4]
    writer.array("ends", np.array([0, len(chunk)]))
    writer.array("chunks", chunk)
    with pytest.raises(Damaged, match="a chunk is truncated, or too large"):
        through_file(writer, tmp_path / "a.sealed")
