"""Finds length, friction and start of a pendulum from noisy angles, by differentiating through an ODE solver.

Gauss-Newton with a Jacobian by forward mode: four parameters need four tangents, whatever the number of steps.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorplay as tp

GRAVITY = 9.81
STEP = 0.02  # s
NAMES = ("length (m)", "friction (1/s)", "angle (rad)", "speed (rad/s)")
TRUE = (1.3, 0.25, 1.9, 0.4)
GUESS = (1.0, 0.1, 1.5, 0.0)


def swing(parameters: Any, steps: int) -> Any:
    """Angles at each step, [steps], by the classical Runge-Kutta method of fourth order."""
    length, friction = parameters[0], parameters[1]

    def slope(state: tuple[Any, Any]) -> tuple[Any, Any]:
        angle, speed = state
        return speed, -GRAVITY / length * angle.sin() - friction * speed

    def moved(state: tuple[Any, Any], by: tuple[Any, Any], h: float) -> tuple[Any, Any]:
        return state[0] + by[0] * h, state[1] + by[1] * h

    state = (parameters[2], parameters[3])
    angles = []
    for _ in range(steps):
        k1 = slope(state)
        k2 = slope(moved(state, k1, STEP / 2))
        k3 = slope(moved(state, k2, STEP / 2))
        k4 = slope(moved(state, k3, STEP))
        state = (
            state[0] + (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0]) * (STEP / 6),
            state[1] + (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1]) * (STEP / 6),
        )
        angles.append(state[0])
    return tp.stack(angles)


def measured(steps: int, noise: float = 0.05, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    clean = swing(tp.tensor(TRUE, dtype=tp.float64), steps)
    return clean + tp.from_numpy(noise * rng.standard_normal(steps))


def fit(data: Any, guess: tuple[float, ...] = GUESS, rounds: int = 12) -> tuple[Any, Any, list[float]]:
    """(parameters, their covariance, the error of each round). Levenberg's damping keeps a bad guess from leaping."""
    steps = data.shape[0]
    x = tp.tensor(guess, dtype=tp.float64)
    damping, errors = 1.0, []

    def residual(p: Any) -> Any:
        return swing(p, steps) - data

    jacobian = tp.func.jacfwd(residual)
    best = (residual(x) ** 2).mean().item()
    for _ in range(rounds):
        r, j = residual(x), jacobian(x)  # [steps], [steps, 4]
        errors.append(best)
        normal = j.mT @ j
        while damping < 1e8:
            trial = x - tp.linalg.solve(normal + damping * tp.eye(4, dtype=tp.float64), j.mT @ r)
            error = (residual(trial) ** 2).mean().item()
            if error < best:
                x, best, damping = trial, error, damping / 10
                break
            damping *= 10
    j = jacobian(x)
    return x, tp.linalg.inv(j.mT @ j) * best, [*errors, best]


def draw(data: Any, found: Any, errors: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    steps = data.shape[0]
    t = STEP * np.arange(1, steps + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), width_ratios=[2, 1])
    left.plot(t, data.numpy(), ".", ms=3, alpha=0.5, label="measured")
    left.plot(t, swing(tp.tensor(GUESS, dtype=tp.float64), steps).numpy(), "--", lw=1, label="first guess")
    left.plot(t, swing(found, steps).numpy(), lw=1.5, label="fitted")
    left.set(xlabel="time (s)", ylabel="angle (rad)", title="A pendulum calibrated through its ODE solver")
    left.legend()
    right.semilogy(errors, "o-")
    right.set(xlabel="round", ylabel="mean squared error", title="Gauss-Newton, Jacobian by forward mode")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--png", type=Path, default=Path("pendulum.png"))
    options = parser.parse_args()
    data = measured(options.steps)
    started = time.perf_counter()
    found, covariance, errors = fit(data)
    spread = covariance.diagonal().sqrt()
    for name, value, error, true in zip(NAMES, found.tolist(), spread.tolist(), TRUE, strict=True):
        print(f"{name:15} {value:8.4f} +- {error:.4f}   (true {true})")
    print(f"{len(errors) - 1} rounds in {time.perf_counter() - started:.2f} s")
    draw(data, found, errors, options.png)
    print(options.png.resolve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
