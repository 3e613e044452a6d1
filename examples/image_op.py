"""An image filter as an op of one's own: edges survive, noise does not, and its strength is learned by gradient.

The op is the flux of Perona and Malik's diffusion (1990), one line of formula. A photograph that scikit-learn ships is
given noise; each step of the filter has its own threshold and rate, found by differentiating through all the steps.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import tensorplay as tp

flux = tp.define_op(
    "edge_flux(Tensor slope, Tensor edge) -> Tensor out",
    expr="slope / (1 + (slope / edge)**2)",
    test={"slope": [-2, 2], "edge": [0.1, 1]},
    doc="What flows across a border of brightness: much over gentle slopes, little over edges.",
)


def photograph(height: int = 200) -> Any:
    """A grey photograph in [0, 1], [height, width]."""
    from sklearn.datasets import load_sample_image

    colour = load_sample_image("china.jpg").astype(np.float32) / 255
    step = colour.shape[0] // height
    grey = colour[: height * step, : colour.shape[1] // step * step].mean(axis=2)
    return tp.from_numpy(grey.reshape(height, step, -1, step).mean(axis=(1, 3)).astype(np.float32))


def diffuse(image: Any, edges: Any, rates: Any) -> Any:
    """One step a pair of threshold and rate; nothing flows through the frame."""
    for edge, rate in zip(edges.exp(), rates.sigmoid() * 0.25, strict=True):
        down = flux(image[1:] - image[:-1], edge)
        right = flux(image[:, 1:] - image[:, :-1], edge)
        pad = tp.nn.functional.pad
        image = image + rate * (
            pad(down, (0, 0, 0, 1)) - pad(down, (0, 0, 1, 0)) + pad(right, (0, 1)) - pad(right, (1, 0))
        )
    return image


def learn(clean: Any, noisy: Any, steps: int = 6, rounds: int = 60) -> tuple[Any, Any, list[float]]:
    """(log thresholds, rates, the loss of each round) by gradient descent with momentum."""
    edges = tp.full((steps,), -2.0).requires_grad_()
    rates = tp.zeros(steps).requires_grad_()
    speed = [tp.zeros(steps), tp.zeros(steps)]
    losses = []
    for _ in range(rounds):
        loss = ((diffuse(noisy, edges, rates) - clean) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        with tp.no_grad():
            for p, v in zip((edges, rates), speed, strict=True):
                v.mul_(0.9).add_(p.grad / tp.linalg.vector_norm(p.grad), alpha=-0.05)
                p.add_(v)
                p.grad = None
    return edges.detach(), rates.detach(), losses


def decibel(a: Any, b: Any) -> float:
    """Peak signal-to-noise ratio of images in [0, 1]."""
    return float(-10 * np.log10(((a - b) ** 2).mean().item()))


def draw(pictures: dict[str, Any], losses: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(pictures) + 1, figsize=(16, 3.6))
    for axis, (title, image) in zip(axes, pictures.items(), strict=False):
        axis.imshow(image.numpy(), cmap="gray", vmin=0, vmax=1)
        axis.set_title(title)
        axis.axis("off")
    axes[-1].semilogy(losses)
    axes[-1].set(xlabel="round", title="mean squared error")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--png", type=Path, default=Path("image_op.png"))
    options = parser.parse_args()
    tp.manual_seed(0)
    clean = photograph()
    noisy = clean + 0.1 * tp.randn_like(clean)
    edges, rates, losses = learn(clean, noisy, rounds=options.rounds)
    filtered = diffuse(noisy, edges, rates)
    print(f"noisy {decibel(noisy, clean):.2f} dB, filtered {decibel(filtered, clean):.2f} dB")
    print(f"thresholds {[round(x, 3) for x in edges.exp().tolist()]}")
    draw({"photograph": clean, "with noise": noisy, "filtered": filtered}, losses, options.png)
    print(options.png.resolve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
