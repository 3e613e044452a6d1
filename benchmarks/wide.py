"""`python benchmarks/wide.py [--torch PYTHON] [--size N] [--grad]`: some hundred everyday calls beside PyTorch's.

A net with wide meshes, slowest first, one thread: what is ten times slower than it need be shows, whatever it is.
Arrays of N float32 and matrices of 256 columns; with --grad the call and its gradients. Each library runs in a process
of its own, twice by turns.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import subprocess
import sys
import time
from typing import Any

import numpy as np

CALLS = """
x+y; x-y; x*y; x/y; x+1; 1-x; 1/x; x*2.5; x**2; x**3; x**0.5; p**2.5; p**y; -x; x.abs(); x.exp(); x.log(); p.log();
p.sqrt(); p.rsqrt(); x.sin(); x.cos(); x.tan(); x.tanh(); x.sigmoid(); x.atan(); x.asinh(); t.atan2(x,y);
t.hypot(x,y); x.erf(); x.expm1(); p.log1p(); p.log2(); p.log10(); p.lgamma(); p.digamma(); x.floor(); x.round();
x.trunc(); x.frac(); x.sign(); x.clamp(-1,1); x.clamp(min=0); t.maximum(x,y); t.minimum(x,y); t.fmod(x,y);
t.remainder(x,y); x//1; x%1; t.lerp(x,y,0.3); t.addcmul(x,y,z); t.addcmul(x,y,z,value=.5); t.addcdiv(x,y,p);
x.masked_fill(b,0.); t.where(b,x,y); t.where(b,x,0.); x>y; x>0; x==y; x!=0; b&b; ~b; b.sum(); x.isnan();
x.isfinite(); t.isclose(x,y); x.nan_to_num(); F.relu(x); F.gelu(x); F.gelu(x,approximate='tanh'); F.silu(x);
F.elu(x); F.softplus(x); F.leaky_relu(x); F.hardswish(x); F.mish(x); F.logsigmoid(x); F.relu6(x); F.softsign(x);
F.celu(x); F.selu(x); F.hardtanh(x); F.threshold(x,0.,0.); x.sum(); x.mean(); x.prod(); x.max(); x.min();
x.argmax(); x.std(); x.var(); x.norm(); x.any(); b.all(); m.sum(0); m.sum(1); m.mean(0); m.mean(1); m.max(0);
m.max(1); m.amax(0); m.amax(1); m.argmax(0); m.argmax(1); m.var(0); m.var(1); m.std(1); m.norm(dim=0);
m.norm(dim=1); m.prod(1); m.logsumexp(1); m.logsumexp(0); m.cumsum(0); m.cumsum(1); m.cumprod(1); m.cummax(1);
m.median(1); m.sort(1); m.argsort(1); m.topk(5,1); m.kthvalue(5,1); x.sort(); t.unique(xi); t.bincount(xi);
t.histc(x,50); F.softmax(m,1); F.softmax(m,0); F.log_softmax(m,1); F.softmin(m,1); F.cross_entropy(m,tgt);
F.nll_loss(m,tgt); F.mse_loss(x,y); F.l1_loss(x,y); F.smooth_l1_loss(x,y); F.huber_loss(x,y);
F.binary_cross_entropy_with_logits(x,y.sigmoid()); F.kl_div(x,p); F.layer_norm(m,(256,));
F.layer_norm(m,(256,),row,row); F.group_norm(c,4); F.batch_norm(m,row,row.abs()); F.normalize(m);
F.cosine_similarity(m,m2); F.dropout(x,0.5); F.one_hot(xi,100); m+row; m*col; m-m.mean(1,keepdim=True); m+mt.t();
m.t().contiguous(); m.flip(0); m.flip(1); m.roll(1,0); m.roll(1,1); t.cat([m,m2],0); t.cat([m,m2],1);
t.stack([x,y]); t.stack([x,y],1); m.repeat(2,2); m.repeat_interleave(2,0);
m.unsqueeze(1).expand(R,3,256).contiguous(); m[::2]; m[::2].contiguous(); m[:,::2].contiguous(); m[ir]; m[:,tgt];
m.gather(1,i); m.index_select(0,ir); t.take(x,xi); x[b]; b.nonzero(); m.masked_select(bm); m.scatter(1,i,m2);
m.scatter_add(1,i,m2); m.index_add(0,ir,m2); m.tril(); m.triu(); t.diag(row); F.embedding(ie,emb); x.double();
xd.float(); x.half(); xh.float(); xb.float(); x.bfloat16(); xi.float(); x.long(); b.float(); xh+xh; xb*xb; xh.exp();
xh.sum(); xd+xd; xd.exp(); xd.sum(); xi+xi; xi*3; xi//7; xi%7; xi.sum(); x32+x32; x32.max(); cx+cx; cx*cx; cx.abs();
cx.exp(); F.pad(m,(1,1,1,1)); F.pad(c,(1,1,1,1),mode='reflect'); F.max_pool2d(c,2); F.avg_pool2d(c,2);
F.adaptive_avg_pool2d(c,1); F.conv2d(c,w,padding=1); F.interpolate(c,scale_factor=2);
F.interpolate(c,scale_factor=2,mode='bilinear'); t.fft.rfft(m); t.fft.fft(m); t.outer(row,row); m@m2.t() if R<=1024
else row; t.einsum('ij,ij->i',m,m2); t.bmm(c.reshape(8,16,-1),c.reshape(8,16,-1).transpose(1,2)); sq@sq;
t.linalg.inv(spd); t.linalg.cholesky(spd); t.linalg.eigh(spd); t.linalg.svd(sq); t.linalg.qr(sq);
t.linalg.solve(spd,sq); t.linalg.det(sq); t.cdist(m[:256],m2[:256]); t.rand(N); t.randn(N); t.randint(0,10,(N,));
t.randperm(N); t.bernoulli(x.sigmoid()); t.arange(N); t.linspace(0,1,N); t.zeros(N); t.full((N,),1.5);
t.tensor(x.tolist()[:1000]); x.clone(); m.clone(); m.t().clone(); m.diagonal().sum(); t.trace(m[:256]);
t.cross(f(N//3,3),f(N//3,3),dim=1); t.meshgrid(row,row,indexing='ij'); x.view(-1,1)*row[:4];
t.searchsorted(row.sort()[0],x); t.bucketize(x,row.sort()[0]); t.quantile(x[:10000],0.5); t.cov(m[:64]);
t.corrcoef(m[:64]); t.diff(x); t.trapezoid(x); m.unfold(0,2,1).sum(); t.logaddexp(x,y); t.xlogy(x,p);
t.special.i0(x); t.special.ndtr(x); t.special.bessel_j0(x); t.polygamma(1,p); t.erfinv(x.clamp(-.9,.9));
t.logit(x.sigmoid()); t.sinc(x); t.allclose(x,x); t.equal(x,x); m.cummin(1); m.logcumsumexp(1); t.count_nonzero(x);
t.vander(row,4); t.tensordot(m,m2,dims=2); t.kron(sq,sq[:4,:4]); t.block_diag(sq,sq);
t.nn.functional.scaled_dot_product_attention(c.reshape(8,16,-1)[:,:,:64].unsqueeze(1),c.reshape(8,16,-1)[:,:,:64].unsqueeze(1),c.reshape(8,16,-1)[:,:,:64].unsqueeze(1))
"""


def operands(t: Any, size: int, grad: bool) -> dict[str, Any]:
    """What the calls name; t is the library."""
    rng = np.random.default_rng(0)

    def f(*sizes: int) -> Any:
        return t.from_numpy(rng.standard_normal(sizes).astype(np.float32))

    def whole(n: int, *sizes: int) -> Any:
        return t.from_numpy(rng.integers(0, n, sizes))

    rows = max(1, size // 256)
    x, sq = f(size), f(64, 64)
    v = {
        "x": x, "y": f(size), "z": f(size), "p": x.abs() + 0.5, "m": f(rows, 256), "m2": f(rows, 256), "row": f(256),
        "col": f(rows, 1), "c": f(8, 16, 32, max(1, size // 4096)), "w": f(16, 16, 3, 3), "emb": f(1000, 64), "sq": sq,
        "spd": sq @ sq.t() + 64 * t.eye(64), "xd": x.double(), "xh": x.to(t.float16), "xb": x.to(t.bfloat16),
    }  # fmt: skip
    if grad:
        for tensor in v.values():
            tensor.requires_grad_()
    return v | {
        "t": t, "F": t.nn.functional, "f": f, "N": size, "R": rows, "mt": v["m"].t(), "b": x.detach() > 0,
        "bm": v["m"].detach() > 0, "i": whole(256, rows, 256), "ir": whole(rows, rows), "xi": whole(100, size),
        "x32": whole(100, size).int(), "ie": whole(1000, max(1, size // 64)), "tgt": whole(256, rows),
        "cx": t.complex(x.detach(), v["y"].detach()),
    }  # fmt: skip


def times(library: str, size: int, grad: bool) -> dict[str, float]:
    """The shortest time of each call, in seconds; calls that the library refuses are left out, and said on stderr."""
    t = importlib.import_module(library)
    t.set_num_threads(1)
    scope = operands(t, size, grad)
    leaves = [a for a in scope.values() if isinstance(a, t.Tensor) and a.requires_grad and a.is_leaf]

    def gradients(out: Any) -> Any:
        out = out[0] if isinstance(out, (tuple, list)) else out
        return t.autograd.grad(out, leaves, grad_outputs=t.ones_like(out), allow_unused=True)

    found: dict[str, float] = {}
    for call in (c.strip() for c in CALLS.replace("\n", " ").split(";")):
        run = eval(f"lambda: gradients({call})" if grad else f"lambda: {call}", {**scope, "gradients": gradients})
        try:
            run()
        except Exception as e:
            print(f"{library}: {call}: {type(e).__name__}: {str(e)[:80]}", file=sys.stderr)
            continue
        start = time.perf_counter()
        run()
        once = time.perf_counter() - start
        n = max(1, min(10_000, int(0.002 / max(once, 1e-7))))
        best = math.inf
        for _ in range(1 if once > 0.2 else 7):
            start = time.perf_counter()
            for _ in range(n):
                run()
            best = min(best, (time.perf_counter() - start) / n)
        found[call] = best
    return found


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--torch", default=sys.executable if importlib.util.find_spec("torch") else "", metavar="PYTHON")
    p.add_argument("--size", type=int, default=65536)
    p.add_argument("--grad", action="store_true")
    p.add_argument("--part", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.part:
        print(json.dumps(times(a.part, a.size, a.grad)))
        return 0
    if not a.torch:
        p.error("give --torch the interpreter that has PyTorch")
    best: dict[str, dict[str, float]] = {"tensorplay": {}, "torch": {}}
    for _ in range(2):
        for library, python in (("torch", a.torch), ("tensorplay", sys.executable)):
            command = [python, __file__, "--size", str(a.size), "--part", library, *(["--grad"] if a.grad else [])]
            got = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            for call, seconds in got.items():
                best[library][call] = min(seconds, best[library].get(call, math.inf))
    ours, theirs = best["tensorplay"], best["torch"]
    both = sorted(ours.keys() & theirs.keys(), key=lambda call: theirs[call] / ours[call])
    for call in both:
        print(f"{theirs[call] / ours[call]:8.2f}x  {ours[call] * 1e6:10.1f} us  {call}")
    mean = math.exp(sum(math.log(theirs[c] / ours[c]) for c in both) / len(both))
    print(f"{mean:8.2f}x  geometric mean of {len(both)} calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
