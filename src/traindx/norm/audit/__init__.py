"""What is wrong with the normalization of a checkpoint or a model: checks of one file each."""
