"""Files of weights, one module a format: what they hold without running any of it."""
