from __future__ import annotations

import numpy as np
import pytest

from axplore.proofs.sort_kernels import ascending, keep_distinct


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 100, 5000])
@pytest.mark.parametrize("n_different", [1, 3, 10_000])
def test_keys_are_sorted_like_by_numpy(size: int, n_different: int) -> None:
    keys = np.random.default_rng(size).integers(n_different, size=size).astype(float)
    for each in (keys, np.sort(keys), np.sort(keys)[::-1].copy(), np.where(keys > n_different // 2, np.inf, keys)):
        order = ascending(each)
        np.testing.assert_array_equal(np.sort(order), np.arange(size))
        np.testing.assert_array_equal(each[order], np.sort(each))


@pytest.mark.parametrize("size", [0, 1, 2, 40, 1000])
def test_numbers_are_kept_once_in_order_and_those_around_stay(size: int) -> None:
    numbers = np.random.default_rng(size).integers(60, size=size + 5)
    result = numbers.copy()
    end = keep_distinct(result, 3, 3 + size)
    np.testing.assert_array_equal(result[3:end], np.unique(numbers[3 : 3 + size]))
    np.testing.assert_array_equal(result[:3], numbers[:3])
    np.testing.assert_array_equal(result[3 + size :], numbers[3 + size :])
