"""Ctrl-C in calls into LAPACK that take seconds: they end at once, their operands and results stay whole."""

import subprocess
import sys

import pytest

# A timer's SIGINT arrives in the middle. What comes after shows that memory is whole: a small factorisation is right,
# and the process ends with its own exit code, whatever still runs.
PROGRAM = """
import signal, sys, time
import tensorplay as tp
L = tp.linalg
n = {n}
a = tp.randn(n, n, dtype=tp.float64)
a = a @ a.T + n * tp.eye(n, dtype=tp.float64) if {definite} else a
before = a.clone()
signal.setitimer(signal.ITIMER_REAL, 0.2)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
late = None
try:
    {call}
except KeyboardInterrupt:
    late = time.monotonic()
signal.setitimer(signal.ITIMER_REAL, 0)
assert late is not None, "ended before the signal"
assert bool((a == before).all())
small = a[:40, :40].contiguous()
u, s, v = L.svd(small)
assert float((u * s @ v - small).abs().max()) < 1e-9 * float(small.abs().max())
print("whole")
"""


@pytest.mark.parametrize(
    ("call", "n", "definite"),
    [
        ("L.svd(a)", 2500, False),
        ("L.svdvals(a)", 3500, False),
        ("L.eigh(a)", 3500, True),
        ("L.eig(a)", 1500, False),
        ("L.lstsq(a, a)", 2500, False),
    ],
)
def test_ends_at_once(call: str, n: int, definite: bool) -> None:
    program = PROGRAM.format(call=call, n=n, definite=definite)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr


def test_a_long_call_gives_what_a_short_one_does() -> None:
    # Beyond two billion operations the call works on copies of its own.
    import numpy as np
    import tensorplay as tp

    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 1300, 1300))
    x = tp.tensor(a)
    b = rng.standard_normal((2, 1300, 1300))
    np.testing.assert_allclose((x @ tp.linalg.solve(x, tp.tensor(b))).numpy(), b, atol=1e-7)
    np.testing.assert_allclose((x @ tp.linalg.inv(x)).numpy()[1], np.eye(1300), atol=1e-8)
    q, r = tp.linalg.qr(x)
    np.testing.assert_allclose((q @ r).numpy(), a, atol=1e-10)
    np.testing.assert_allclose((q.mT @ q).numpy()[0], np.eye(1300), atol=1e-11)
    lower = tp.linalg.cholesky(x @ x.mT)
    np.testing.assert_allclose((lower @ lower.mT).numpy(), a @ a.swapaxes(1, 2), atol=1e-8)
    w, v = tp.linalg.eigh(x + x.mT)
    np.testing.assert_allclose((v * w.unsqueeze(-2) @ v.mT).numpy(), a + a.swapaxes(1, 2), atol=1e-9)
    small = x[0, :600, :600]
    u, s, vh = tp.linalg.svd(small)
    np.testing.assert_allclose((u * s @ vh).numpy(), small.numpy(), atol=1e-10)
    c = small.to(tp.complex128) + 1j * x[1, :600, :600]
    values, vectors = tp.linalg.eig(c)
    np.testing.assert_allclose((c @ vectors).numpy(), (vectors * values).numpy(), atol=1e-8)
    values, vectors = tp.linalg.eig(small)
    np.testing.assert_allclose((small.to(tp.complex128) @ vectors).numpy(), (vectors * values).numpy(), atol=1e-8)
    np.testing.assert_allclose((small @ tp.linalg.lstsq(small, small)[0]).numpy(), small.numpy(), atol=1e-7)
