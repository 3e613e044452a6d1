"""Random programs of differentiable ops: their language, how they are drawn, and what they are compared with."""
