"""Clustering of boxes into blocks: a permutation within the band, split by the widest column."""

import numpy as np

from tidings.index.boxes.kernels.cluster import SortScratch, cluster


def clustered(codes, start, end):
    size = len(codes)
    ranks = np.arange(size, dtype=np.int32)
    scratch = SortScratch(np.empty(size, np.int32), np.zeros(257, np.int64))
    cluster(codes, ranks, start, end, scratch)
    return ranks


def test_ranks_outside_the_band_stay():
    codes = np.random.default_rng(1).integers(0, 255, (500, 4)).astype(np.uint8)
    ranks = clustered(codes, 64, 400)
    assert ranks[:64].tolist() == list(range(64))
    assert ranks[400:].tolist() == list(range(400, 500))
    assert sorted(ranks.tolist()) == list(range(500))


def test_blocks_gather_equal_boxes():
    """Boxes of two places in turn: each block of 64 ends up with one of them."""
    codes = np.zeros((256, 3), np.uint8)
    codes[1::2, 1] = 200
    blocks = codes[clustered(codes, 0, 256), 1].reshape(4, 64)
    assert (blocks == blocks[:, :1]).all()
