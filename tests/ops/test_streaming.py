"""Results that are written past the caches hold what others hold, whatever their alignment and layout."""

import subprocess
import sys

PROGRAM = """
import numpy as np
import tensorplay as tp

rng = np.random.default_rng(0)
def t(*shape): return tp.tensor(rng.standard_normal(shape).astype("float32"))
def same(got, want): np.testing.assert_array_equal(got.numpy(), want)

x, y = t(70_001), t(70_001)
same(x + y, x.numpy() + y.numpy())
same(x + 2.0, x.numpy() + np.float32(2))
same(x > y, x.numpy() > y.numpy())
out = tp.zeros(70_020)
tp.add(x, y, out=out[3:70_004])
same(out[3:70_004], x.numpy() + y.numpy())
same(out[:3], np.zeros(3)); same(out[70_004:], np.zeros(16))
want = x.numpy() + y.numpy()
same(x.clone().add_(y), want)
m, row, col = t(300, 401), t(401), t(300, 1)
same(m + row, m.numpy() + row.numpy())
same(m * col, m.numpy() * col.numpy())
same(m.double(), m.numpy().astype("float64"))
same(m.half(), m.numpy().astype("float16"))
same(m.t().contiguous(), m.numpy().T)
same(m.t() + t(401, 300) * 0, m.numpy().T)
same(m[:, 7:390].clone(), m.numpy()[:, 7:390])
same(m[::2, ::3] + 1.0, m.numpy()[::2, ::3] + np.float32(1))
wide = tp.zeros(300, 500)
wide[:, 50:451] = m
same(wide[:, 50:451], m.numpy()); assert float(wide.abs().sum()) == float(m.abs().sum())
three = t(20, 30, 401)
same(three.transpose(0, 1).contiguous(), three.numpy().transpose(1, 0, 2))
same(three.permute(2, 0, 1).contiguous(), three.numpy().transpose(2, 0, 1))
F = tp.nn.functional
for f in (lambda m: tp.softmax(m, 1), lambda m: tp.log_softmax(m, 1), lambda m: F.layer_norm(m, (401,)), tp.exp):
    same(f(m), np.stack([f(m[i : i + 1]).numpy()[0] for i in range(300)]))  # rows alone, not above the size
outer = tp.matmul(three[:, :, :1], three[:, :1, :])
same(outer, three.numpy()[:, :, :1] * three.numpy()[:, :1, :])
same(tp.outer(x[:300], y[:401]), x.numpy()[:300, None] * y.numpy()[None, :401])
same((m.half() + row.half()).float(), (m.numpy().astype("f2") + row.numpy().astype("f2")).astype("f4"))
"""


def test_streamed_results(monkeypatch):
    monkeypatch.setenv("TENSORPLAY_STREAM_KB", "1")
    for threads in ("1", "2"):
        monkeypatch.setenv("TENSORPLAY_NUM_THREADS", threads)
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
