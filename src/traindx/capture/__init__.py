"""Measuring inside a training run."""
