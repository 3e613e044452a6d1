"""Sizes that do not fit are refused: by the op's name, the argument's and the sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tensorplay as tp

F = tp.nn.functional
ONE, TWO, THREE = tp.ones(2), tp.ones(2, 2), tp.ones(2, 2, 2)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tp.mv(TWO, TWO), r"mv: vec must have 1 dimension; it is \[2, 2\]"),
        (lambda: tp.mv(ONE, ONE), r"mv: input must have 2 dimensions; it is \[2\]"),
        (lambda: tp.mm(TWO, ONE), r"mm: mat2 must have 2 dimensions; it is \[2\]"),
        (lambda: tp.bmm(THREE, TWO), r"bmm: mat2 must have 3 dimensions; it is \[2, 2\]"),
        (lambda: tp.addmv(ONE, TWO, TWO), r"addmv: vec must have 1 dimension"),
        (lambda: tp.addmm(TWO, TWO, ONE), r"addmm: mat2 must have 2 dimensions"),
        (lambda: tp.baddbmm(THREE, THREE, TWO), r"baddbmm: batch2 must have 3 dimensions"),
        (lambda: tp.dot(TWO, TWO), r"dot: input must have 1 dimension"),
        (lambda: tp.outer(TWO, ONE), r"outer: .*1 dimension.*\[2, 2\]"),
        (lambda: tp.outer(ONE, TWO), r"outer: .*1 dimension.*\[2, 2\]"),
        (lambda: F.conv1d(tp.ones(3), tp.ones(1, 1, 1)), r"conv1d: .*input must have 3 dimensions"),
        (lambda: F.conv2d(tp.ones(1, 1, 2, 2), tp.ones(1, 1)), r"conv2d: .*weight must have"),
        (lambda: F.conv3d(tp.ones(1, 1, 2, 2, 2, 2), tp.ones(1, 1, 1, 1, 1, 1)), r"conv3d: .*weight must have"),
        (lambda: tp.ones(2, 3).copy_(tp.ones(3, 2)), r"copy_: values of shape \[3, 2\] do not broadcast"),
        (lambda: tp.ones(2, 3).copy_(tp.ones(2, 2)), r"copy_: values of shape \[2, 2\] do not broadcast"),
        (lambda: tp.ones(2, 3).copy_(tp.ones(3, 3)), r"copy_: values of shape \[3, 3\] do not broadcast"),
        (lambda: tp.ones(3).copy_(tp.ones(2, 3)), r"copy_: values of shape \[2, 3\] do not broadcast"),
    ],
)
def test_sizes_are_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=says):
        call()


def test_numbers_of_steps_beyond_any_stack() -> None:
    x = tp.tensor([1.0, 4.0, 9.0, 16.0])
    assert tp.diff(x, n=2**31).shape == (0,) and tp.diff(x, n=2**62).shape == (0,)
    assert tp.diff(tp.arange(3000.0, dtype=tp.float64), n=2500).abs().max() == 0
    with pytest.raises(ValueError, match="matrix_power: n=-9223372036854775808"):
        tp.matrix_power(tp.eye(2), -(2**63))
