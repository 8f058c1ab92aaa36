"""Signal propagation theory: how variance and gradients travel through depth, without torch."""
