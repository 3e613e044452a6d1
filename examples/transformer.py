"""A small transformer learns to write English of the kind Python's own manual is written in, letter by letter.

The text ships with Python (pydoc_data). Every step is an op of tensorplay; there is no module and no optimiser class.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorplay as tp

F: Any = tp.nn.functional
CONTEXT = 64
WIDTH = 96
HEADS = 4
LAYERS = 2
BATCH = 24
PEAK_RATE = 3e-3


class Text:
    """Letters as integers; the last tenth is held out."""

    def __init__(self, most: int = 400_000) -> None:
        from pydoc_data.topics import topics

        prose = "\n".join(topics[key] for key in sorted(topics))[:most]
        self.letters = sorted(set(prose))
        number = {c: i for i, c in enumerate(self.letters)}
        codes = np.array([number[c] for c in prose], dtype=np.int64)
        cut = len(codes) * 9 // 10
        self.train, self.held_out = codes[:cut], codes[cut:]

    def batch(self, codes: np.ndarray, rng: np.random.Generator, size: int = BATCH) -> tuple[Any, Any]:
        """(input, target), [size, CONTEXT] each: the target is the input one letter on."""
        starts = rng.integers(0, len(codes) - CONTEXT - 1, size)
        windows = codes[starts[:, None] + np.arange(CONTEXT + 1)]
        return tp.from_numpy(windows[:, :-1].copy()), tp.from_numpy(windows[:, 1:].copy())


class Transformer:
    """Decoder of LAYERS blocks, pre-normalised; the embedding serves as the output layer too."""

    def __init__(self, letters: int, width: int = WIDTH) -> None:
        self.width = width

        def weight(*sizes: int, scale: float) -> Any:
            return (tp.randn(*sizes) * scale).requires_grad_()

        self.letter = weight(letters, width, scale=0.02)
        self.place = weight(CONTEXT, width, scale=0.02)
        self.blocks: list[dict[str, Any]] = []
        for _ in range(LAYERS):
            narrow, deep = 1 / math.sqrt(width), 1 / math.sqrt(2 * LAYERS)
            self.blocks.append({
                "norm1": tp.ones(width).requires_grad_(), "norm2": tp.ones(width).requires_grad_(),
                "qkv": weight(3 * width, width, scale=narrow), "mix": weight(width, width, scale=narrow * deep),
                "up": weight(4 * width, width, scale=narrow), "down": weight(width, 4 * width, scale=narrow / 2 * deep),
            })  # fmt: skip
        self.norm = tp.ones(width).requires_grad_()

    @property
    def parameters(self) -> list[Any]:
        return [self.letter, self.place, self.norm, *(p for block in self.blocks for p in block.values())]

    def __call__(self, codes: Any) -> Any:
        n, length = codes.shape
        x = F.embedding(codes, self.letter) + self.place[:length]  # [n, length, width]
        for block in self.blocks:
            y = F.layer_norm(x, (self.width,), block["norm1"])
            heads = F.linear(y, block["qkv"]).reshape(n, length, 3, HEADS, self.width // HEADS).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
            x = x + F.linear(seen.transpose(1, 2).reshape(n, length, self.width), block["mix"])
            y = F.layer_norm(x, (self.width,), block["norm2"])
            x = x + F.linear(F.gelu(F.linear(y, block["up"])), block["down"])
        return F.linear(F.layer_norm(x, (self.width,), self.norm), self.letter)

    def loss(self, codes: Any, target: Any) -> Any:
        """Mean over letters of -log p, in nats."""
        return F.cross_entropy(self(codes).reshape(-1, self.letter.shape[0]), target.reshape(-1))

    def write(self, start: list[int], count: int, rng: np.random.Generator, heat: float = 0.7) -> list[int]:
        codes = list(start)
        with tp.no_grad():
            for _ in range(count):
                last = self(tp.tensor([codes[-CONTEXT:]]))[0, -1]
                p = tp.softmax(last / heat, -1).numpy().astype(np.float64)
                codes.append(int(rng.choice(len(p), p=p / p.sum())))
        return codes


def adam(parameters: list[Any], rate: float, step: int, state: list[tuple[Any, Any]]) -> None:
    """One step of Adam (Kingma and Ba 2015) with bias correction, in place."""
    with tp.no_grad():
        for p, (mean, square) in zip(parameters, state, strict=True):
            mean.mul_(0.9).add_(p.grad, alpha=0.1)
            square.mul_(0.98).addcmul_(p.grad, p.grad, value=0.02)
            p.sub_((mean / (1 - 0.9**step)) / ((square / (1 - 0.98**step)).sqrt() + 1e-8) * rate)
            p.grad = None


def train(text: Text, steps: int, seed: int = 0) -> tuple[Transformer, list[float], list[tuple[int, float]]]:
    """The model, the loss of each step, and (step, loss) on held-out text."""
    tp.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Transformer(len(text.letters))
    state = [(tp.zeros_like(p), tp.zeros_like(p)) for p in model.parameters]
    losses, held_out = [], []
    started = time.perf_counter()
    for step in range(1, steps + 1):
        loss = model.loss(*text.batch(text.train, rng))
        loss.backward()
        rate = PEAK_RATE * min(1, step / 50) * (0.55 + 0.45 * math.cos(math.pi * step / steps))
        adam(model.parameters, rate, step, state)
        losses.append(loss.item())
        if step % max(steps // 10, 1) == 0:
            with tp.no_grad():
                held_out.append((step, model.loss(*text.batch(text.held_out, rng, 64)).item()))
            spent = (time.perf_counter() - started) / step
            print(f"step {step:5d}  loss {losses[-1]:.3f}  held out {held_out[-1][1]:.3f}  {1e3 * spent:.0f} ms a step")
    return model, losses, held_out


def draw(losses: list[float], held_out: list[tuple[int, float]], sample: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), width_ratios=[1, 1.2])
    left.plot(losses, lw=0.6, label="training")
    left.plot(*zip(*held_out, strict=True), "o-", label="held out")
    left.set(xlabel="step", ylabel="loss per letter (nats)", title="A transformer reads Python's manual")
    left.legend()
    right.axis("off")
    right.set_title("What it writes")
    right.text(0, 0.98, sample, family="monospace", fontsize=8, va="top", transform=right.transAxes)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--png", type=Path, default=Path("transformer.png"))
    options = parser.parse_args()
    text = Text()
    model, losses, held_out = train(text, options.steps)
    start = [text.letters.index(c) for c in "The value of"]
    sample = "".join(text.letters[i] for i in model.write(start, 500, np.random.default_rng(1)))
    print(sample)
    draw(losses, held_out, sample, options.png)
    print(options.png.resolve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
