"""Trains a small network on the handwritten digits that scikit-learn ships, with one activation, and draws the result.

Uses the names tensorplay shares with PyTorch and no optimiser or module: every step is an op. The activation is
`tensorplay.activation`, which demo.py adds; `--op` names another one.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

WIDTHS = (64, 128, 64, 10)
BATCH = 64
EPOCHS = 100
PEAK_RATE = 4e-3
CLIP = 1.0


@dataclass
class Digits:
    """1,797 images of 8 x 8 pixels in [0, 1], a quarter of them held out."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def standardised(self, images: np.ndarray) -> np.ndarray:
        return ((images - self.train_x.mean()) / self.train_x.std()).astype(np.float32)

    @classmethod
    def load(cls, seed: int) -> Digits:
        from sklearn.datasets import load_digits

        data = load_digits()
        order = np.random.default_rng(seed).permutation(len(data.target))
        held_out, rest = np.split(order, [len(order) // 4])
        images = data.data.astype(np.float32) / 16.0
        labels = data.target.astype(np.int64)
        return cls(images[rest], labels[rest], images[held_out], labels[held_out])


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Half of the images, chosen at random, moved by up to a pixel each way: 1,348 digits are few to learn from."""
    count = len(images)
    canvas = np.zeros((count, 10, 10), images.dtype)
    canvas[:, 1:9, 1:9] = images.reshape(count, 8, 8)
    down, right = np.where(rng.random(count) < 0.5, rng.integers(0, 3, (2, count)), 1)
    rows, columns = down[:, None] + np.arange(8), right[:, None] + np.arange(8)
    return canvas[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]].reshape(count, 64)


@dataclass
class History:
    loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)
    predicted: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    seconds: float = 0.0


class Network:
    """Fully connected layers with the activation between them."""

    def __init__(self, tp: ModuleType, activation: Any) -> None:
        self.tp, self.activation = tp, activation
        self.parameters: list[Any] = []
        for fan_in, fan_out in itertools.pairwise(WIDTHS):
            weight = tp.randn(fan_out, fan_in) * math.sqrt(1.0 / fan_in)
            self.parameters += [weight.requires_grad_(), tp.zeros(fan_out).requires_grad_()]

    def __call__(self, x: Any) -> Any:
        linear = self.tp.nn.functional.linear
        *hidden, weight, bias = self.parameters
        for w, b in zip(hidden[::2], hidden[1::2], strict=True):
            x = self.activation(linear(x, w, b))
        return linear(x, weight, bias)


class Adam:
    """Adam with the gradient's norm clipped, in plain ops."""

    def __init__(self, tp: ModuleType, parameters: list[Any]) -> None:
        self.tp, self.parameters, self.steps = tp, parameters, 0
        self.mean = [tp.zeros_like(p) for p in parameters]
        self.square = [tp.zeros_like(p) for p in parameters]

    def step(self, rate: float) -> None:
        self.steps += 1
        fix_mean, fix_square = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        with self.tp.no_grad():
            norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in self.parameters))
            scale = min(1.0, CLIP / (norm + 1e-12))
            for p, m, v in zip(self.parameters, self.mean, self.square, strict=True):
                g = p.grad * scale
                m.mul_(0.9).add_(g * 0.1)
                v.mul_(0.999).add_(g * g * 0.001)
                p.sub_(m / fix_mean / ((v / fix_square).sqrt() + 1e-8) * rate)
                p.grad = None


def accuracy(tp: ModuleType, network: Network, x: Any, y: Any) -> tuple[float, np.ndarray]:
    with tp.no_grad():
        predicted = network(x).argmax(1)
        return float((predicted == y).sum().item()) / len(y), predicted.numpy()


def train(tp: ModuleType, activation: Any, data: Digits, epochs: int, seed: int) -> History:
    from tqdm import tqdm

    tp.manual_seed(seed)
    rng = np.random.default_rng(seed)
    train_x, test_x = (tp.from_numpy(data.standardised(part)) for part in (data.train_x, data.test_x))
    train_y, test_y = tp.from_numpy(data.train_y), tp.from_numpy(data.test_y)
    network = Network(tp, activation)
    optimiser = Adam(tp, network.parameters)
    history = History()
    total = epochs * math.ceil(len(data.train_y) / BATCH)
    started = time.perf_counter()
    with tqdm(range(epochs), unit="epoch", ncols=100) as bar:
        for _ in bar:
            losses = []
            for rows in np.split(rng.permutation(len(data.train_y)), range(BATCH, len(data.train_y), BATCH)):
                images = tp.from_numpy(data.standardised(shifted(data.train_x[rows], rng)))
                labels = train_y.index_select(0, tp.from_numpy(rows))
                loss = tp.nn.functional.cross_entropy(network(images), labels)
                loss.backward()
                progress = optimiser.steps / total
                optimiser.step(PEAK_RATE * min(1.0, 10 * progress + 0.1) * 0.5 * (1 + math.cos(math.pi * progress)))
                losses.append(loss.item())
            history.loss.append(float(np.mean(losses)))
            history.train_accuracy.append(accuracy(tp, network, train_x, train_y)[0])
            reached, history.predicted = accuracy(tp, network, test_x, test_y)
            history.test_accuracy.append(reached)
            bar.set_postfix_str(f"loss {history.loss[-1]:.4f}, held-out accuracy {100 * reached:.2f} %")
    history.seconds = time.perf_counter() - started
    return history


def draw(tp: ModuleType, activation: Any, formula: str, data: Digits, history: History, path: Path) -> None:
    """One picture: the formula and its derivative, the curves, and digits the network gets wrong."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    x = tp.linspace(-5, 5, 401).requires_grad_()
    y = activation(x)
    y.sum().backward()
    slope = x.grad.numpy()

    figure = plt.figure(figsize=(12, 7), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[2, 1])
    top, bottom = parts
    shape, loss, hits = top.subplots(1, 3)
    shape.plot(x.detach().numpy(), y.detach().numpy(), label="activation(x)")
    shape.plot(x.detach().numpy(), slope, "--", label="derivative, by autograd")
    shape.set(title=formula, xlabel="x")
    shape.axhline(0, color="0.8", zorder=0)
    shape.legend()
    loss.semilogy(range(1, len(history.loss) + 1), history.loss)
    loss.set(title="training loss", xlabel="epoch")
    hits.plot(range(1, len(history.loss) + 1), history.train_accuracy, label="trained on")
    hits.plot(range(1, len(history.loss) + 1), history.test_accuracy, label="held out")
    hits.set(title=f"accuracy: {100 * history.test_accuracy[-1]:.2f} % held out", xlabel="epoch", ylim=(0.9, 1.005))
    hits.axhline(0.97, color="0.8", zorder=0)
    hits.legend(loc="lower right")

    wrong = np.flatnonzero(history.predicted != data.test_y)
    bottom.suptitle(f"{len(wrong)} of {len(data.test_y)} held-out digits misread")
    cells = bottom.subplots(1, 10)
    for cell in cells:
        cell.axis("off")
    for cell, row in zip(cells, wrong, strict=False):
        cell.imshow(data.test_x[row].reshape(8, 8), cmap="gray_r")
        cell.set_title(f"{data.test_y[row]} read as {history.predicted[row]}", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def find_op(tp: ModuleType, name: str) -> Any:
    found = getattr(tp, name, None) or getattr(tp.nn.functional, name, None)
    if found is None:
        raise SystemExit(f"digits: {tp.__name__} has no op '{name}'")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="tensorplay", help="tensorplay, or another module with the same names")
    parser.add_argument("--op", default="activation", help="the activation")
    parser.add_argument("--formula", default="", help="its formula, for the picture's title")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--goal", type=float, default=0.97, help="held-out accuracy to reach")
    parser.add_argument("--png", type=Path, default=Path("digits.png"))
    options = parser.parse_args()

    tp = importlib.import_module(options.library)
    activation = find_op(tp, options.op)
    data = Digits.load(options.seed)
    print(f"{len(data.train_y)} digits to train on, {len(data.test_y)} held out; layers {WIDTHS}")
    history = train(tp, activation, data, options.epochs, options.seed)
    draw(tp, activation, options.formula or options.op, data, history, options.png)
    reached = history.test_accuracy[-1]
    print(f"held-out accuracy {reached:.4f} after {options.epochs} epochs in {history.seconds:.1f} s")
    print(f"picture: {options.png}")
    if reached < options.goal:
        print(f"digits: that is below {options.goal}; an activation this network can't learn with?")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
