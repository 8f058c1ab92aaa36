"""Measuring inside a training run: the only part, with `stats`, that knows torch."""
