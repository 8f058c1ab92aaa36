"""The frameworks, one module each: how it names, shapes and sets up its normalization layers."""
