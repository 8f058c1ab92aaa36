"""What is noted of optimizers, learning rates and clipping: name, unit and meaning."""

from __future__ import annotations

from traindx.messages import Message, say

OPTIMIZED: tuple[tuple[str, str | Message, Message], ...] = (
    (
        "optimizer.waiting",
        say("steps"),
        say(
            "Steps since an optimizer was made that has not taken one, at the part of a model that "
            "only it holds and whose parameters have gradients."
        ),
    ),
    (
        "optimizer.replaced",
        "1",
        say("Optimizers that were replaced by another one of the very same parameters."),
    ),
    ("optimizer.life", say("steps"), say("Mean steps after which that happened.")),
    (
        "optimizer.memory",
        say("steps"),
        say(
            "Steps over which such an optimizer averages gradients, 1/(1 - m) of its momentum or "
            "shortest average; 0 if it keeps nothing of them."
        ),
    ),
    (
        "clip.late",
        "1",
        say(
            "Share of the calls of `clip_grad_norm_` that came when the step was over and no "
            "backward had followed."
        ),
    ),
    (
        "clip.scaled",
        "1",
        say("Share of them that found gradients still multiplied by a GradScaler's scale."),
    ),
    ("clip.ratio", "1", say("Norm of the gradient at the last of them, over the largest allowed.")),
    (
        "model.unregistered",
        say("tensors"),
        say(
            "Tensors in an attribute of the model that have a gradient, though they are no "
            "parameters of it and in no optimizer."
        ),
    ),
)
