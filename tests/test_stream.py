"""The words under every sampler: exactly in range, uniform, never repeated."""

from __future__ import annotations

import os
import threading
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.privacy.noise import SeededStream, SystemStream, uniform_below

BLOCK = 1 << 16

FAR_OUT = 1e-9
BOUNDS = [2, 3, 5, 127, 128, 129, 255, 256, 257, 1000, 2**16 - 1, 2**16, 2**16 + 1]
WIDE_BOUNDS = [2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 3 * 2**40 + 7, 2**61 + 1, 2**62 - 1, 2**62]


def uniform(drawn: np.ndarray, bound: int, cells: int = 1 << 17) -> bool:
    """Whether draws may be uniform on `[0, bound)`; values are pooled when there are too many."""
    cells = min(cells, bound)
    edges = [bound * cell // cells for cell in range(cells + 1)]
    observed = np.bincount(np.searchsorted(edges, drawn, side="right") - 1, minlength=cells)
    expected = len(drawn) * np.array([float(high - low) / bound for low, high in pairwise(edges)])
    return bool(chi2.sf(((observed - expected) ** 2 / expected).sum(), cells - 1) > FAR_OUT)


@pytest.mark.parametrize("bound", BOUNDS)
def test_every_value_below_the_bound_occurs_and_none_other(bound: int) -> None:
    drawn = uniform_below(SeededStream(1), bound, 20 * bound + 1000)
    assert set(drawn.tolist()) == set(range(bound))


@pytest.mark.parametrize("bound", BOUNDS)
def test_draws_are_uniform(bound: int) -> None:
    assert uniform(uniform_below(SeededStream(2), bound, max(200_000, 8 * bound)), bound)


@pytest.mark.parametrize("bound", WIDE_BOUNDS)
def test_wide_draws_are_in_range_and_uniform_at_both_ends(bound: int) -> None:
    drawn = uniform_below(SeededStream(3), bound, 200_000)
    assert drawn.min() >= 0
    assert int(drawn.max()) < bound
    assert uniform(drawn, bound, 1000)
    assert uniform(drawn % 251, 251)


def test_the_uniformity_check_rejects_a_remainder_of_words() -> None:
    words = np.frombuffer(SeededStream(4).take(200_000), np.uint8).astype(np.int64)
    assert not uniform(words % 100, 100)


def test_the_uniformity_check_rejects_a_missing_value() -> None:
    assert not uniform(uniform_below(SeededStream(5), 99, 200_000), 100)


def test_consecutive_draws_are_independent() -> None:
    drawn = uniform_below(SeededStream(6), 10, 400_000)
    assert uniform(drawn[::2] * 10 + drawn[1::2], 100)


def test_a_bound_of_one_takes_no_randomness() -> None:
    stream = SeededStream(7)
    assert not uniform_below(stream, 1, 1000).any()
    assert stream.take(16) == SeededStream(7).take(16)


def test_no_draws_are_no_draws() -> None:
    assert uniform_below(SeededStream(8), 10, 0).shape == (0,)


@pytest.mark.parametrize("bound", [0, -1, 2**62 + 1, 2**64])
def test_a_bound_out_of_range_is_refused(bound: int) -> None:
    with pytest.raises(OverflowError):
        uniform_below(SeededStream(9), bound, 1)


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
@pytest.mark.parametrize("bound", [2, 3, 2**32 + 1])
def test_exactly_as_many_as_asked(bound: int, count: int) -> None:
    assert uniform_below(SeededStream(10), bound, count).shape == (count,)


def test_a_seed_fixes_every_draw() -> None:
    first, second = SeededStream(11), SeededStream(11)
    for bound in (3, 1000, 2**40 + 1):
        assert (uniform_below(first, bound, 1000) == uniform_below(second, bound, 1000)).all()


def test_different_seeds_differ() -> None:
    assert SeededStream(12).take(32) != SeededStream(13).take(32)


def test_a_seeded_stream_does_not_repeat_itself() -> None:
    stream = SeededStream(14)
    assert stream.take(32) != stream.take(32)


def test_only_the_system_is_secure() -> None:
    assert SystemStream().secure
    assert not SeededStream(15).secure


@pytest.mark.parametrize("size", [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_the_system_gives_the_size_asked_for(size: int) -> None:
    stream = SystemStream()
    assert [len(stream.take(size)) for _ in range(3)] == [size] * 3


def test_the_system_never_gives_bytes_twice() -> None:
    stream = SystemStream()
    taken = [bytes(stream.take(16)) for _ in range(3 * BLOCK // 16)]
    assert len(set(taken)) == len(taken)


def test_the_system_is_uniform() -> None:
    assert uniform(uniform_below(SystemStream(), 1000, 200_000), 1000)


def taken_in_a_fork(stream: SystemStream, size: int) -> bytes:
    """Give what a forked child takes from the stream it inherits."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, stream.take(size))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forks_repeat_neither_their_parent_nor_each_other() -> None:
    stream = SystemStream()
    stream.take(16)
    taken = [taken_in_a_fork(stream, 32), taken_in_a_fork(stream, 32), bytes(stream.take(32))]
    assert [len(block) for block in taken] == [32, 32, 32]
    assert len(set(taken)) == 3


def test_threads_do_not_share_bytes() -> None:
    stream = SystemStream()
    taken: list[list[bytes]] = [[] for _ in range(4)]

    def fill(mine: list[bytes]) -> None:
        mine.extend(bytes(stream.take(16)) for _ in range(50_000))

    threads = [threading.Thread(target=fill, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [block for mine in taken for block in mine]
    assert {len(block) for block in everything} == {16}
    assert len(set(everything)) == len(everything)
