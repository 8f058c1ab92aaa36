"""Three ordinary training scripts, and what their trained models are judged by."""
