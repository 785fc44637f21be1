"""Arrays of a segment pass as they are written, and fail when one number in them is wrong."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.index.access.workload import subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.kernels.match import WIDTH
from tidings.index.access.kernels.partial_match import PARTIAL_WIDTH
from tidings.index.access.kernels.records import HEAD, NEVER
from tidings.index.access.kernels.validate import (
    CheckedParts,
    CheckMap,
    IndexSizes,
    access_postings_valid,
    heads_valid,
    keys_valid,
    largest_parts,
    nodes_valid,
    partial_postings_valid,
    records_valid,
    trees_valid,
)
from tidings.index.access.segment import Segment
from tidings.index.access.vocabulary import Vocabulary

COUNT = 120


class Arrays:
    """A segment, and what its arrays are validated with."""

    def __init__(self) -> None:
        vocabulary = Vocabulary()
        encoded = encode(subscriptions(COUNT, 8), range(COUNT), vocabulary)
        self.segment = Segment(encoded, vocabulary)
        self.records, self.postings = self.segment.records, self.segment.postings
        self.partial = self.segment.partial_view(0).postings
        checks = len(self.segment.weights.part)
        self.sizes = IndexSizes(COUNT, vocabulary.terms, vocabulary.slots, checks)

    def mapped(self) -> tuple[bool, CheckMap]:
        checks = CheckMap(
            np.zeros(len(self.records.words), np.bool_),
            np.empty(self.sizes.checks, np.int32),
            np.empty(self.sizes.checks, np.int32),
            np.empty(COUNT + 1, np.int32),
        )
        return records_valid(self.records, self.sizes, checks), checks

    def valid(self) -> bool:
        right, checks = self.mapped()
        if not right:
            return False
        seen = np.zeros(self.sizes.checks, np.bool_)
        return (
            trees_valid(self.postings)
            and heads_valid(self.postings, WIDTH, self.sizes.terms)
            and keys_valid(self.postings)
            and access_postings_valid(self.postings, checks.begins, self.sizes)
            and heads_valid(self.partial, PARTIAL_WIDTH, self.sizes.terms)
            and partial_postings_valid(self.partial, self.records.words, checks, seen)
        )


def set_rank(arrays: Arrays) -> None:
    arrays.records.words[0] += 2


def set_end(arrays: Arrays) -> None:
    arrays.records.words[1] = len(arrays.records.words) + 1


def set_first_check(arrays: Arrays) -> None:
    arrays.records.words[2] = 1


def set_term(arrays: Arrays) -> None:
    arrays.records.words[HEAD] = arrays.sizes.terms


def set_slot(arrays: Arrays) -> None:
    arrays.records.words[HEAD] = ~(4 * arrays.sizes.slots)


def set_offset(arrays: Arrays) -> None:
    arrays.records.offsets[1] -= 1


def set_node(arrays: Arrays) -> None:
    arrays.postings.nodes[arrays.postings.cells > 0] += 1


def set_key(arrays: Arrays) -> None:
    used = np.flatnonzero(arrays.postings.heads[::3] >= 0)
    arrays.postings.heads[3 * used[0]] = arrays.postings.heads[3 * used[1]]


def set_start(arrays: Arrays) -> None:
    arrays.postings.heads[4::3] += WIDTH


def set_row(arrays: Arrays) -> None:
    arrays.postings.entries[0] += 1


def set_next_check(arrays: Arrays) -> None:
    arrays.postings.entries[1] = arrays.sizes.terms


def set_check_number(arrays: Arrays) -> None:
    arrays.partial.entries[2] = arrays.sizes.checks


FAULTS: list[Callable[[Arrays], None]] = [
    set_rank,
    set_end,
    set_first_check,
    set_term,
    set_slot,
    set_offset,
    set_node,
    set_key,
    set_start,
    set_row,
    set_next_check,
    set_check_number,
]


def test_written_arrays_are_valid() -> None:
    assert Arrays().valid()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_wrong_number_is_noticed(fault: Callable[[Arrays], None]) -> None:
    arrays = Arrays()
    fault(arrays)
    assert not arrays.valid()


def test_tombstones_are_not_validated() -> None:
    arrays = Arrays()
    arrays.records.ranks[1::2] = NEVER - 1
    assert arrays.valid()


def test_predicates_of_records_must_be_nodes() -> None:
    part = np.array([0, 2, 1], np.uint8)
    checked = CheckedParts(part, np.array([1, 0], np.int32), np.array([0, 2, 3], np.int32))
    largest = np.full(2, -1, np.int32)
    largest_parts(checked.part, checked.numbers, checked.firsts, largest)
    assert largest.tolist() == [1, 2]
    firsts, nodes = np.array([0, 2]), np.array([-1, 0, 1, -1, 0], np.int32)
    assert nodes_valid(checked, firsts, nodes)
    assert not nodes_valid(checked, firsts, np.array([-1, -1, 1, -1, 0], np.int32))
    assert nodes_valid(checked, np.array([-1, 2]), np.array([-1, -1, 1, -1, 0], np.int32))
