"""The state of normalization layers carried from one framework to another, with a proof."""
