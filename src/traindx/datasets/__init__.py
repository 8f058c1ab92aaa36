"""Real images to train on: the embedded Fashion-MNIST subset and the loader of the full set."""
