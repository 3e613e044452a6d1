"""The array API standard: names, signatures, values. NumPy 2, which follows the same standard, is the reference."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

import numpy as np
import pytest
import tensorplay as tp
import tensorplay.array_api as xp

# Signatures of the standard, version 2024.12, without annotations.
UNARY, BINARY, REDUCE = "(x, /)", "(x1, x2, /)", "(x, /, *, axis=None, keepdims=False)"
LINE, PLANE = "(x, /, *, n=None, axis=-1, norm='backward')", "(x, /, *, s=None, axes=None, norm='backward')"
SIGNATURES = {
    "__array_namespace_info__": "()",
    **dict.fromkeys(
        [
            "abs",
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "bitwise_invert",
            "ceil",
            "conj",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "floor",
            "imag",
            "isfinite",
            "isinf",
            "isnan",
            "log",
            "log10",
            "log1p",
            "log2",
            "logical_not",
            "negative",
            "positive",
            "real",
            "reciprocal",
            "round",
            "sign",
            "signbit",
            "sin",
            "sinh",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "trunc",
            "matrix_transpose",
            "nonzero",
            "unique_all",
            "unique_counts",
            "unique_inverse",
            "unique_values",
            "linalg.det",
            "linalg.eigh",
            "linalg.eigvalsh",
            "linalg.inv",
            "linalg.matrix_transpose",
            "linalg.slogdet",
            "linalg.svdvals",
        ],
        UNARY,
    ),
    **dict.fromkeys(
        [
            "add",
            "atan2",
            "bitwise_and",
            "bitwise_left_shift",
            "bitwise_or",
            "bitwise_right_shift",
            "bitwise_xor",
            "copysign",
            "divide",
            "equal",
            "floor_divide",
            "greater",
            "greater_equal",
            "hypot",
            "less",
            "less_equal",
            "logaddexp",
            "logical_and",
            "logical_or",
            "logical_xor",
            "matmul",
            "maximum",
            "minimum",
            "multiply",
            "nextafter",
            "not_equal",
            "pow",
            "remainder",
            "subtract",
            "linalg.matmul",
            "linalg.outer",
            "linalg.solve",
        ],
        BINARY,
    ),
    **dict.fromkeys(["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min"], REDUCE),
    **dict.fromkeys(("sum", "prod"), "(x, /, *, axis=None, dtype=None, keepdims=False)"),
    **dict.fromkeys(("std", "var"), "(x, /, *, axis=None, correction=0.0, keepdims=False)"),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), "(x, /, *, axis=None, dtype=None, include_initial=False)"),
    **dict.fromkeys(("sort", "argsort"), "(x, /, *, axis=-1, descending=False, stable=True)"),
    **dict.fromkeys(("empty", "ones", "zeros"), "(shape, *, dtype=None, device=None)"),
    **dict.fromkeys(("empty_like", "ones_like", "zeros_like"), "(x, /, *, dtype=None, device=None)"),
    **dict.fromkeys(("tril", "triu"), "(x, /, *, k=0)"),
    **dict.fromkeys(("finfo", "iinfo"), "(type, /)"),
    **dict.fromkeys(("vecdot", "linalg.vecdot", "linalg.cross"), "(x1, x2, /, *, axis=-1)"),
    **dict.fromkeys(("tensordot", "linalg.tensordot"), "(x1, x2, /, *, axes=2)"),
    **dict.fromkeys(("concat", "stack"), "(arrays, /, *, axis=0)"),
    **{f"fft.{n}": LINE for n in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]},
    **{f"fft.{n}": PLANE for n in ["fftn", "ifftn", "rfftn", "irfftn"]},
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "astype": "(x, dtype, /, *, copy=True, device=None)",
    "broadcast_arrays": "(*arrays)",
    "broadcast_to": "(x, /, shape)",
    "can_cast": "(from_, to, /)",
    "clip": "(x, /, min=None, max=None)",
    "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None)",
    "expand_dims": "(x, /, *, axis=0)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "fft.fftfreq": "(n, /, *, d=1.0, dtype=None, device=None)",
    "fft.fftshift": "(x, /, *, axes=None)",
    "fft.ifftshift": "(x, /, *, axes=None)",
    "fft.rfftfreq": "(n, /, *, d=1.0, dtype=None, device=None)",
    "flip": "(x, /, *, axis=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)",
    "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "isdtype": "(dtype, kind)",
    "linalg.cholesky": "(x, /, *, upper=False)",
    "linalg.diagonal": "(x, /, *, offset=0)",
    "linalg.matrix_norm": "(x, /, *, keepdims=False, ord='fro')",
    "linalg.matrix_power": "(x, n, /)",
    "linalg.matrix_rank": "(x, /, *, rtol=None)",
    "linalg.pinv": "(x, /, *, rtol=None)",
    "linalg.qr": "(x, /, *, mode='reduced')",
    "linalg.svd": "(x, /, *, full_matrices=True)",
    "linalg.trace": "(x, /, *, offset=0, dtype=None)",
    "linalg.vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "meshgrid": "(*arrays, indexing='xy')",
    "moveaxis": "(x, source, destination, /)",
    "permute_dims": "(x, /, axes)",
    "repeat": "(x, repeats, /, *, axis=None)",
    "reshape": "(x, /, shape, *, copy=None)",
    "result_type": "(*arrays_and_dtypes)",
    "roll": "(x, /, shift, *, axis=None)",
    "searchsorted": "(x1, x2, /, *, side='left', sorter=None)",
    "squeeze": "(x, /, axis)",
    "take": "(x, indices, /, *, axis=None)",
    "take_along_axis": "(x, indices, /, *, axis=-1)",
    "tile": "(x, repetitions, /)",
    "unstack": "(x, /, *, axis=0)",
    "where": "(condition, x1, x2, /)",
}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
POINTS = (0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, math.inf, -math.inf, math.nan)


def find(name: str) -> Any:
    place: Any = xp
    for part in name.split("."):
        place = getattr(place, part)
    return place


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    signature = inspect.signature(find(name))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    got = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    assert str(got) == SIGNATURES[name]
    assert name.rpartition(".")[2] in find(name.rpartition(".")[0]).__all__ if "." in name else name in xp.__all__


def test_namespace() -> None:
    assert tp.ones(1).__array_namespace__() is xp
    assert tp.ones(1).__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="2030"):
        tp.ones(1).__array_namespace__(api_version="2030.12")
    assert xp.__array_api_version__ == "2024.12"
    assert (xp.e, xp.inf, xp.pi, xp.newaxis) == (math.e, math.inf, math.pi, None) and math.isnan(xp.nan)
    info = xp.__array_namespace_info__()
    assert info.dtypes(kind="unsigned integer") == {n: getattr(tp, n) for n in INTEGERS[4:]}
    assert info.default_dtypes()["integral"] is tp.int64 and info.default_device() in info.devices()
    assert set(info.dtypes()) == {"bool", *INTEGERS, *FLOATS, *COMPLEX}
    assert tp.ones(2).to_device("cpu").tolist() == [1, 1]
    assert all(set(m.__all__) <= set(dir(m)) for m in (xp, xp.linalg, xp.fft))


def compare(got: Any, want: Any, note: str, tol: float = 0.0, signs: bool = True) -> None:
    want = np.asarray(want)
    assert got.dtype.name == want.dtype.name and tuple(got.shape) == want.shape, f"{note}: {got}, NumPy has {want!r}"
    a = np.asarray(got)
    if want.dtype.kind in "fc":
        eps = tol or 8 * float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(a, want, rtol=eps, atol=eps, equal_nan=True, err_msg=note)
        if want.dtype.kind == "f" and signs:
            zero = want == 0
            np.testing.assert_array_equal(np.signbit(a)[zero], np.signbit(want)[zero], err_msg=f"{note}: sign of zero")
    else:
        np.testing.assert_array_equal(a, want, err_msg=note)


def values(dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return np.asarray([True, False, True])
    if dtype in INTEGERS:
        return np.asarray([0, 1, 2, 3, 7, 100], dtype=dtype) * (1 if dtype.startswith("u") else np.asarray(-1, dtype))
    if dtype in COMPLEX:
        return np.asarray([1 + 2j, -0.5 + 0.25j, 3j, 2, -1.5 - 1j], dtype=dtype)
    return np.asarray(POINTS, dtype=dtype)


REAL_ONLY = {"ceil", "floor", "trunc", "isnan", "isinf", "isfinite", "signbit", "abs", "sign", "square", "negative",
             "positive", "round", "conj", "reciprocal"}  # fmt: skip
_UNARY_NAMES = [n for n, s in SIGNATURES.items() if s == UNARY and n not in (
    "matrix_transpose", "nonzero", "imag", "logical_not", "bitwise_invert", "signbit") and "." not in n
    and not n.startswith("unique")]  # fmt: skip


@pytest.mark.parametrize("name", _UNARY_NAMES)
def test_unary(name: str) -> None:
    """Special values are those of C99, which the standard's tables repeat; NumPy has them from libm."""
    complex_too = name not in ("ceil", "floor", "trunc", "round", "log2")
    for dtype in (
        *FLOATS,
        *(COMPLEX if complex_too else ()),
        *(INTEGERS if name in REAL_ONLY - {"reciprocal"} else ()),
    ):
        a = values(dtype)
        if name == "negative" and dtype.startswith("uint"):
            continue
        with np.errstate(all="ignore"):
            want = getattr(np, name)(a)
        compare(find(name)(xp.asarray(a)), want, f"{name} of {dtype}", 2e-5 if dtype == "complex64" else 0)


BINARY_OF = {
    **dict.fromkeys(["add", "multiply", "subtract", "pow", "equal", "not_equal", "divide"], (*FLOATS, *COMPLEX)),
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp"], FLOATS),
    **dict.fromkeys(
        ["floor_divide", "remainder", "maximum", "minimum", "greater", "greater_equal", "less", "less_equal"], FLOATS
    ),
    "nextafter": FLOATS,
}
INTEGER_TOO = {"add", "multiply", "subtract", "equal", "not_equal", "maximum", "minimum", "greater", "less",
               "floor_divide", "remainder", "greater_equal", "less_equal"}  # fmt: skip


@pytest.mark.parametrize("name", BINARY_OF)
def test_binary(name: str) -> None:
    for dtype in (*BINARY_OF[name], *(INTEGERS if name in INTEGER_TOO else ())):
        a = values(dtype)
        pairs = list(itertools.product(a, a))
        x1, x2 = np.asarray([p[0] for p in pairs], dtype), np.asarray([p[1] for p in pairs], dtype)
        if dtype in INTEGERS and name in ("floor_divide", "remainder"):
            x1, x2 = x1[x2 != 0], x2[x2 != 0]
        if name == "pow" and dtype in COMPLEX:
            x1, x2 = x1[2:], x2[2:]
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x1, x2)
        got = find(name)(xp.asarray(x1), xp.asarray(x2))
        # Which zero is the larger one is left open.
        compare(
            got, want, f"{name} of {dtype}", 1e-4 if dtype == "complex64" else 0, name not in ("maximum", "minimum")
        )


@pytest.mark.parametrize(
    ("name", "x1", "x2", "want"),
    [
        ("pow", math.nan, 0.0, 1.0), ("pow", 1.0, math.nan, 1.0), ("pow", -1.0, math.inf, 1.0),
        ("pow", -0.0, -3.0, -math.inf), ("pow", -math.inf, 3.0, -math.inf), ("pow", 0.5, -math.inf, math.inf),
        ("pow", -2.0, 0.5, math.nan), ("atan2", 0.0, -0.0, math.pi), ("atan2", -0.0, -0.0, -math.pi),
        ("atan2", math.inf, -math.inf, 3 * math.pi / 4), ("floor_divide", 1.0, math.inf, 0.0),
        ("remainder", 5.0, -3.0, -1.0), ("remainder", 0.0, 0.0, math.nan), ("divide", 1.0, -0.0, -math.inf),
        ("add", -0.0, -0.0, -0.0), ("multiply", math.inf, 0.0, math.nan), ("hypot", math.inf, math.nan, math.inf),
        ("logaddexp", -math.inf, -math.inf, -math.inf), ("copysign", math.nan, -1.0, math.nan),
        ("maximum", math.nan, 1.0, math.nan), ("minimum", 1.0, math.nan, math.nan), ("nextafter", 0.0, -0.0, -0.0),
        ("subtract", math.inf, math.inf, math.nan), ("remainder", 1.0, -math.inf, -math.inf),
    ],
)  # fmt: skip
def test_special_cases(name: str, x1: float, x2: float, want: float) -> None:
    """Rows of the standard's tables of special cases."""
    for dtype in FLOATS:
        got = find(name)(xp.asarray([x1], dtype=getattr(xp, dtype)), xp.asarray([x2], dtype=getattr(xp, dtype)))
        np.testing.assert_allclose(np.asarray(got), [want], rtol=1e-6)
        if want == 0:
            assert np.signbit(np.asarray(got))[0] == np.signbit(want)
        if name in ("add", "multiply", "maximum"):
            scalar = find(name)(xp.asarray([x1], dtype=getattr(xp, dtype)), x2)
            assert scalar.dtype is got.dtype


def test_bits_and_logic() -> None:
    for dtype in INTEGERS:
        a, b = np.asarray([1, 2, 3, 12], dtype), np.asarray([3, 1, 0, 2], dtype)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
            compare(find(name)(xp.asarray(a), xp.asarray(b)), getattr(np, name)(a, b), f"{name} of {dtype}")
        compare(xp.bitwise_invert(xp.asarray(a)), np.invert(a), f"bitwise_invert of {dtype}")
    p, q = np.asarray([True, True, False, False]), np.asarray([True, False, True, False])
    for name in ("logical_and", "logical_or", "logical_xor"):
        compare(find(name)(xp.asarray(p), xp.asarray(q)), getattr(np, name)(p, q), name)
    compare(xp.logical_not(xp.asarray(p)), ~p, "logical_not")
    compare(xp.signbit(xp.asarray([0.0, -0.0, 1.0, -math.inf])), [False, True, False, True], "signbit")
    compare(xp.imag(xp.asarray([1 + 2j])), np.asarray([2.0], np.float32), "imag")


@pytest.mark.parametrize(
    ("left", "right"), list(itertools.combinations_with_replacement((*INTEGERS, *FLOATS, *COMPLEX), 2))
)
def test_promotion(left: str, right: str) -> None:
    kinds = [n in INTEGERS for n in (left, right)]
    if kinds[0] != kinds[1] or ("uint64" in (left, right) and not (left.startswith("u") and right.startswith("u"))):
        return  # the standard leaves mixed kinds, and uint64 with signed integers, undefined
    want = np.promote_types(left, right).name
    assert xp.result_type(getattr(xp, left), getattr(xp, right)).name == want
    assert (xp.ones((2,), dtype=getattr(xp, left)) + xp.ones((2,), dtype=getattr(xp, right))).dtype.name == want
    assert xp.can_cast(getattr(xp, left), getattr(xp, right)) == np.can_cast(left, right)


A = np.arange(24.0).reshape(2, 3, 4)
B = np.asarray([[3, 1, 2, 2], [0, 5, 4, 1], [9, 9, 8, 7]])
SAME = [
    ("sum", A, {"axis": (0, 2)}), ("sum", B.astype(np.uint8), {}), ("sum", B.astype(np.int16), {"axis": 0}),
    ("prod", B, {"axis": (0, 1), "keepdims": True}), ("prod", A, {"axis": 1}), ("mean", A, {"axis": (-1,)}),
    ("std", A, {"axis": 1, "correction": 1.0}), ("var", A, {}), ("max", B, {"axis": 1, "keepdims": True}),
    ("min", A, {"axis": (0, 1)}), ("all", A, {"axis": 2}), ("any", A, {"axis": (1, 2)}), ("argmax", B, {}),
    ("argmin", B, {"axis": 0, "keepdims": True}), ("argmax", B, {"keepdims": True}),
    ("count_nonzero", B, {"axis": 1}), ("cumulative_sum", B, {"axis": 1, "include_initial": True}),
    ("cumulative_prod", A, {"axis": -1}), ("cumulative_sum", B[0].astype(np.uint8), {}),
    ("diff", B, {"axis": 0}), ("diff", A, {"n": 2}), ("diff", B, {"prepend": B[:, :1], "append": B[:, :1]}),
    ("flip", A, {"axis": (0, 2)}), ("flip", A, {}), ("permute_dims", A, {"axes": (2, 0, 1)}),
    ("reshape", A, {"shape": (4, -1)}), ("roll", A, {"shift": 5}), ("roll", A, {"shift": (1, -2), "axis": (0, 2)}),
    ("roll", B, {"shift": 1, "axis": 1}), ("squeeze", A[:, None], {"axis": 1}), ("expand_dims", A, {"axis": -2}),
    ("broadcast_to", B, {"shape": (2, 3, 4)}), ("tril", B, {"k": 1}), ("triu", A, {"k": -1}),
    ("matrix_transpose", A, {}), ("nonzero", B, {}), ("unique_counts", B, {}), ("unique_inverse", B, {}),
    ("unique_all", B, {}), ("unstack", A, {"axis": 1}),
    ("isnan", A, {}), ("clip", B, {"min": 1, "max": 4}), ("zeros_like", A, {}), ("ones_like", B, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "a", "given"), SAME, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(SAME)])
def test_as_numpy(name: str, a: np.ndarray[Any, Any], given: dict[str, Any]) -> None:
    arrays = {k: xp.asarray(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    got, want = find(name)(xp.asarray(a), **arrays), getattr(np, name)(a, **given)
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for g, w in zip(got, want, strict=True):
        compare(g, w, name)


def test_several_arrays() -> None:
    a, b = np.asarray([[1, 2], [3, 4]]), np.asarray([[5.5, 6.5]], np.float32)
    ta, tb = xp.asarray(a), xp.asarray(b)
    for axis in (0, None):
        compare(xp.concat([ta, ta], axis=axis), np.concat([a, a], axis=axis), "concat")
    compare(xp.stack([ta, ta], axis=-1), np.stack([a, a], axis=-1), "stack")
    assert xp.concat([xp.ones((1,), dtype=xp.int8), xp.ones((1,), dtype=xp.int16)]).dtype is xp.int16
    for got, want in zip(xp.broadcast_arrays(ta, tb), np.broadcast_arrays(a, b), strict=True):
        compare(got, want, "broadcast_arrays")
    for indexing in ("xy", "ij"):
        grids = xp.meshgrid(xp.arange(3), xp.arange(2), xp.arange(4), indexing=indexing)
        want_grids = np.meshgrid(np.arange(3), np.arange(2), np.arange(4), indexing=indexing)
        for got, want in zip(grids, want_grids, strict=True):
            compare(got, want, f"meshgrid {indexing}")
    compare(xp.where(ta > 2, ta, 0), np.where(a > 2, a, 0), "where")
    compare(xp.searchsorted(xp.asarray([1.0, 2, 2, 3]), xp.asarray([2.0, 0]), side="right"), [3, 0], "searchsorted")
    sorter = xp.asarray([3, 1, 2, 0])
    compare(xp.searchsorted(xp.asarray([3, 2, 2, 1]), xp.asarray([2]), sorter=sorter), [1], "searchsorted")
    compare(xp.take(xp.asarray(A), xp.asarray([2, 0]), axis=1), np.take(A, [2, 0], axis=1), "take")
    compare(xp.take(xp.asarray(A), xp.asarray([[2, 0]]), axis=-1), np.take(A, [[2, 0]], axis=-1), "take")
    order = xp.argsort(xp.asarray(B), axis=1, descending=True)
    compare(order, np.argsort(-B, axis=1, stable=True), "argsort")
    compare(xp.take_along_axis(xp.asarray(B), order), np.sort(B)[:, ::-1], "take_along_axis")
    compare(xp.sort(xp.asarray([2.0, math.nan, -1])), np.asarray([-1, 2, math.nan], np.float32), "sort")
    for repeats in (2, np.asarray([1, 0])):
        given = repeats if isinstance(repeats, int) else xp.asarray(repeats)
        compare(xp.repeat(ta, given, axis=1), np.repeat(a, repeats, axis=1), "repeat")
    compare(xp.repeat(ta, 2), np.repeat(a, 2), "repeat")
    compare(xp.tile(ta, (2, 1, 2)), np.tile(a, (2, 1, 2)), "tile")
    compare(xp.moveaxis(xp.asarray(A), (0, 1), (2, 0)), np.moveaxis(A, (0, 1), (2, 0)), "moveaxis")
    compare(
        xp.tensordot(xp.asarray(A), xp.asarray(A), axes=((0, 2), (0, 2))),
        np.tensordot(A, A, ((0, 2), (0, 2))),
        "tensordot",
    )
    compare(xp.vecdot(xp.asarray(A), xp.asarray(A), axis=1), np.vecdot(A, A, axis=1), "vecdot")
    compare(xp.unique_values(xp.asarray([1j, 1, 1j, 0])), np.asarray([0, 1j, 1], np.complex64), "unique_values")
    compare(xp.unique_values(xp.asarray(B)), np.unique(B), "unique_values")
    assert xp.unique_counts(xp.asarray([math.nan, 1.0, math.nan])).counts.tolist() == [1, 1, 1]
    assert xp.unique_all(xp.zeros((0,))).counts.tolist() == []


def test_creation() -> None:
    for args in ((5,), (1, 7, 2), (5, 0, -2), (0.0, 1.0, 0.25), (3, 0)):
        want = np.arange(*args)
        compare(xp.arange(*args), want.astype(np.float32) if want.dtype.kind == "f" else want, f"arange{args}")
    compare(xp.linspace(0, 1, 5, endpoint=False, dtype=xp.float64), np.linspace(0, 1, 5, endpoint=False), "linspace")
    compare(xp.linspace(0, 1j, 3, dtype=xp.complex128), np.linspace(0, 1j, 3), "linspace")
    for args, k in (((3,), 0), ((3, 4), 2), ((4, 2), -1), ((2, 2), 5)):
        compare(xp.eye(*args, k=k, dtype=xp.float64), np.eye(*args, k=k), f"eye{args}")
    compare(xp.full((2, 3), 7, dtype=xp.uint16), np.full((2, 3), 7, np.uint16), "full")
    compare(xp.full_like(xp.asarray(B), 3), np.full_like(B, 3), "full_like")
    a = xp.asarray(B)
    assert xp.asarray(a, copy=False) is a and xp.asarray(a, copy=True).data_ptr() != a.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(a, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError, match="cuda"):
        xp.zeros((2,), device="cuda")
    assert xp.from_dlpack(B).data_ptr() == B.ctypes.data
    assert xp.astype(a, xp.int64, copy=False) is a and xp.astype(a, xp.int8).dtype is xp.int8
    with pytest.raises(TypeError, match="astype"):
        xp.astype(xp.asarray([1j]), xp.float32)
    assert xp.isdtype(xp.int8, ("bool", "signed integer")) and not xp.isdtype(xp.float32, "integral")
    with pytest.raises(ValueError, match="kind"):
        xp.isdtype(xp.int8, "whole")
    assert xp.finfo(xp.complex64).bits == 32 and xp.iinfo(a).max == 2**63 - 1


def test_refusals() -> None:
    a = xp.asarray(A)
    with pytest.raises(ValueError, match="size 3"):
        xp.squeeze(a, 1)
    with pytest.raises(ValueError, match="axis"):
        xp.cumulative_sum(a)
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(xp.matrix_transpose(a), (-1,), copy=False)
    with pytest.raises(IndexError, match="axis 7"):
        xp.flip(a, axis=7)
    with pytest.raises(TypeError):
        xp.add(x1=a, x2=a)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="0-d"):
        xp.nonzero(xp.asarray(1))


def test_linalg() -> None:
    rng = np.random.default_rng(0)
    m = rng.standard_normal((2, 3, 3)) + 3 * np.eye(3)
    s = m @ np.swapaxes(m, 1, 2)
    tm, ts = xp.asarray(m), xp.asarray(s)
    for name in ("det", "inv", "pinv", "svdvals", "slogdet", "matrix_rank"):
        got, want = find(f"linalg.{name}")(tm), getattr(np.linalg, name)(m)
        pairs = zip(got, want, strict=True) if name == "slogdet" else ((got, want),)
        for g, w in pairs:
            compare(g, w, name, 1e-10)
    compare(xp.linalg.cholesky(ts), np.linalg.cholesky(s), "cholesky", 1e-10)
    compare(xp.linalg.eigvalsh(ts), np.linalg.eigvalsh(s), "eigvalsh", 1e-10)
    w, v = xp.linalg.eigh(ts)
    compare(v * w[:, None, :] @ v.mT, s, "eigh", 1e-10)
    u, d, vh = xp.linalg.svd(tm, full_matrices=False)
    compare(u * d[:, None, :] @ vh, m, "svd", 1e-10)
    q, r = xp.linalg.qr(tm)
    compare(q @ r, m, "qr", 1e-10)
    compare(xp.linalg.solve(tm, xp.asarray(m[0, :, 0])), np.linalg.solve(m, m[0, :, :1])[..., 0], "solve", 1e-10)
    compare(xp.linalg.matrix_power(tm, -2), np.linalg.matrix_power(m, -2), "matrix_power", 1e-10)
    compare(xp.linalg.pinv(tm, rtol=0.3), np.linalg.pinv(m, rcond=0.3), "pinv", 1e-10)
    for ord in ("fro", "nuc", 1, -1, 2, -2, math.inf):
        compare(xp.linalg.matrix_norm(tm, ord=ord), np.linalg.matrix_norm(m, ord=ord), f"matrix_norm {ord}", 1e-10)
    for ord in (0, 1, 2, 3, math.inf, -math.inf):
        compare(
            xp.linalg.vector_norm(tm, axis=1, ord=ord), np.linalg.vector_norm(m, axis=1, ord=ord), "vector_norm", 1e-10
        )
    compare(xp.linalg.trace(tm, offset=1), np.linalg.trace(m, offset=1), "trace", 1e-10)
    compare(xp.linalg.outer(tm[0, 0], tm[0, 1]), np.linalg.outer(m[0, 0], m[0, 1]), "outer", 1e-10)
    compare(xp.linalg.cross(tm[0], tm[1]), np.linalg.cross(m[0], m[1]), "cross", 1e-10)
    compare(xp.linalg.diagonal(tm, offset=-1), np.linalg.diagonal(m, offset=-1), "diagonal", 1e-10)


def test_operators_with_numbers() -> None:
    for dtype in INTEGERS:
        x = xp.asarray([1, 2, 3], dtype=getattr(xp, dtype))
        for got in (x + 1, 2 * x, x - 1, 7 // x, x % 2, x & 3, x << 1, x**2):
            assert got.dtype is x.dtype
    for dtype in FLOATS:
        x = xp.asarray([1, 2, 3], dtype=getattr(xp, dtype))
        for got in (x + 1, 2.5 * x, 1 / x, x % 2, x**0.5, 2.0**x):
            assert got.dtype is x.dtype
    x = xp.asarray([1.0, 2.0])
    x += 1
    x *= 2.0
    assert x.tolist() == [4.0, 6.0] and (x > 5).dtype is xp.bool
    assert bool(xp.asarray(True)) and int(xp.asarray(3)) == 3 and complex(xp.asarray(1j)) == 1j
    assert [1, 2][xp.asarray(1)] == 2


def test_a_negative_step_reverses() -> None:
    a = np.arange(12.0).reshape(3, 4)
    x = tp.asarray(a)
    for key in (slice(None, None, -1), (slice(2, 0, -1), slice(None, None, -3)), (..., slice(-2, None, -1))):
        np.testing.assert_array_equal(x[key].numpy(), a[key])
