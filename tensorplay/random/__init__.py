"""The default generator: seeding it, reading and restoring its state."""

from .._C import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
