"""Products that an equation or pairs of dimensions describe: values and messages."""

import numpy as np
import pytest
import tensorplay as tp

RNG = np.random.default_rng(0)


def same(got, want, tol=1e-12):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    "equation, sizes",
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,cb", [(2, 3), (4, 2)]),
        ("ii", [(3, 3)]),
        ("iij->j", [(3, 3, 2)]),
        ("...i,...i->...", [(2, 1, 3), (4, 3)]),
        ("i...,j...->...", [(2, 3), (4, 3)]),
        ("abc,cd,de->abe", [(2, 3, 4), (4, 5), (5, 2)]),
        ("a,b,c,d->dcba", [(2,), (3,), (2,), (2,)]),
        ("ij->", [(2, 3)]),
        (" i j , j -> i ", [(2, 3), (3,)]),
        ("aBc,Bd->acd", [(2, 3, 4), (3, 5)]),
    ],
)
def test_einsum(equation, sizes):
    arrays = [RNG.normal(size=s) for s in sizes]
    same(tp.einsum(equation, *map(tp.tensor, arrays)), np.einsum(equation, *arrays))


def test_einsum_sublists():
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
    same(tp.einsum(tp.tensor(a), [0, 1], tp.tensor(b), [1, 2], [0, 2]), a @ b)
    same(tp.einsum(tp.tensor(a), [..., 5], tp.tensor(b), [5, 0], [..., 0]), a @ b)


def test_einsum_sizes_of_one_broadcast():
    a, b = RNG.normal(size=(2, 1)), RNG.normal(size=(3, 4))
    same(tp.einsum("ij,jk->ik", tp.tensor(a), tp.tensor(b)), np.broadcast_to(a, (2, 3)) @ b)
    same(tp.einsum("ij,ij->ij", tp.tensor(a), tp.tensor(b[:2, :2])), a * b[:2, :2])


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda x: tp.einsum("ij,jk", x), "names 2 operands, 1"),
        (lambda x: tp.einsum("ijk", x), r"names 3 dimensions, operand 0 has sizes \[2, 3\]"),
        (lambda x: tp.einsum("ij->k", x), "'k' of the result"),
        (lambda x: tp.einsum("ij->ii", x), "'i' stands twice"),
        (lambda x: tp.einsum("ii", x), "sizes 2 and 3"),
        (lambda x: tp.einsum("i?", x), r"'\?'"),
        (lambda x: tp.einsum("ij,ji->", x, x), "sizes 2 and 3|sizes 3 and 2"),
    ],
)
def test_einsum_messages(call, says):
    with pytest.raises(ValueError, match=says):
        call(tp.ones(2, 3))


def test_tensordot_pairs():
    a, b = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 2, 5))
    same(tp.tensordot(tp.tensor(a), tp.tensor(b), ([2, 0], [0, 1])), np.tensordot(a, b, ([2, 0], [0, 1])))
    same(tp.tensordot(tp.tensor(a), tp.tensor(b), 0), np.tensordot(a, b, 0))
    with pytest.raises(ValueError, match="tensordot: dimension 2 of a has size 4, dimension 1 of b size 2"):
        tp.tensordot(tp.tensor(a), tp.tensor(b), ([2], [1]))


def test_long_dot_products_round_like_one_block():
    n = 1 << 21
    both = tp.full((n, 2), 0.1, dtype=tp.float32)
    exact = n * float(np.float32(0.1)) ** 2
    for x in (both[:, 0], both[:, 0].contiguous()):
        assert abs(float(tp.dot(x, x)) - exact) <= 100 * np.finfo(np.float32).eps * exact
