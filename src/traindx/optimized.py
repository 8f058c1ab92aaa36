"""What is noted of optimizers, learning rates, clipping and data: name, unit and meaning."""

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
        say(
            "Optimizers that were replaced by another one of the very same parameters, at the part "
            "of a model that has these."
        ),
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
    (
        "model.repeated",
        "1",
        say("How often the same module with parameters stands in a list of modules."),
    ),
    (
        "grad.discarded",
        say("passes"),
        say(
            "Backward passes in the step whose gradients were cleared before it, so that the last "
            "pass alone counts; not noted where there are none."
        ),
    ),
    (
        "input.differentiated",
        "1",
        say("1 where the model's input requires a gradient; not noted where it does not."),
    ),
    (
        "load.overwritten",
        "1",
        say(
            "Of the weights that were loaded into a module, the part that was far from what had "
            "been loaded when it was first called, before any step."
        ),
    ),
    (
        "data.passes",
        "1",
        say("Passes over the training data that were begun, of those that give most batches."),
    ),
    ("data.repeats", "1", say("Passes whose first batch was that of the pass before.")),
    (
        "data.reached",
        "1",
        say("The part of the data that the longest pass came to; 0 if they have no known end."),
    ),
    ("data.batches", "1", say("Batches that all passes have given.")),
    (
        "loss.factor",
        "1",
        say(
            "Greatest factor with which the loss counts a loss function of torch's that has no "
            "upper bound, in the first two steps: negative where all of them are maximized."
        ),
    ),
    (
        "loss.rewarded",
        "1",
        say(
            "Correlation, over the samples of the first two steps, between a variable that is "
            "named as a reward and the factor with which the loss counts the log-likelihood of "
            "what was drawn: -1 where what is rewarded becomes more likely, 1 where less."
        ),
    ),
    (
        "freeze.ignored",
        say("tensors"),
        say(
            "Parameters that an attribute of their module, or a misspelt one of their own, says "
            "require no gradient, though they do, have one and are in an optimizer."
        ),
    ),
    (
        "freeze.fresh",
        say("0 or 1"),
        say(
            "Of a frozen last layer: 1 if its weights have the very distribution that torch draws "
            "new ones from."
        ),
    ),
    (
        "plateau.metric",
        say("as the user's"),
        say("What a `ReduceLROnPlateau` was told, at its optimizer."),
    ),
    ("plateau.more_is_better", say("0 or 1"), say("1 if its mode is `max`.")),
    (
        "optimizer.forgotten",
        say("steps"),
        say(
            "Steps whose averages were lost: at an optimizer that goes on with loaded weights and "
            "was not given a state, of the one before it with the same settings. 0 where only a "
            "file is known to hold a state for it."
        ),
    ),
)
