"""What a conversion must leave unchanged."""

from __future__ import annotations

from enum import Enum


class Purpose(str, Enum):
    """What must come through unchanged."""

    EVALUATION = "evaluation"
    """What the layer answers in evaluation."""
    TRAINING = "training"
    """What training makes of its running statistics from here on."""
