"""The exact normalization core: specifications, a float64 reference, and a rational twin."""
