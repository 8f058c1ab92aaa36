"""What is measured of normalizations, a number each: the name behind `norm.`, unit and meaning."""

from __future__ import annotations

from traindx.messages import Message, say

NORMALIZED: tuple[tuple[str, str | Message, Message], ...] = (
    (
        "training",
        say("0 or 1"),
        say("A normalization's `training` flag in that forward."),
    ),
    (
        "updates",
        "1",
        say("Updates of the running statistics in the step."),
    ),
    (
        "tracked",
        "1",
        say("`num_batches_tracked` after the step."),
    ),
    (
        "initial_weight",
        "1",
        say(
            "Weight that the initial running statistics still have, (1 - momentum)^tracked; 0 for "
            "statistics that were loaded without their counter."
        ),
    ),
    (
        "running_gap",
        say("standard deviations"),
        say(
            "RMS over channels of how far the normalized batch would move if the running "
            "statistics replaced the batch's own: sqrt(b^2 + (a - 1)^2), a = sqrt((var_b + "
            "eps)/(var_r + eps)), b = (mean_b - mean_r)/sqrt(var_r + eps). With several training "
            "passes in the step (`norm.updates` > 1) the batch's statistics are their weighted "
            "mean over these passes."
        ),
    ),
    (
        "variance_noise",
        "1",
        say(
            "RMS over channels of (var_b - var_r)/(var_r + eps): how far the variance of the "
            "batch lies from the running one as it was before the step. NaN where rounding would "
            "dominate, and without an update."
        ),
    ),
    (
        "running_change",
        "1",
        say(
            "RMS over channels of the change of running_mean in the step, over the running "
            "standard deviation sqrt(running_var + eps)."
        ),
    ),
    (
        "calls",
        "1",
        say(
            "Calls of a BatchNorm in the step's training forwards, without those of recomputation."
        ),
    ),
    (
        "pass_gap",
        say("standard deviations"),
        say(
            "RMS over channels of how far the mean of the batch in the first forward pass of the "
            "step lies from that in the second, in the standard deviation of both. NaN where a "
            "layer was updated in one of them only, or rounding would dominate."
        ),
    ),
    (
        "frozen_gap",
        say("standard deviations"),
        say(
            "RMS over channels of sqrt(b^2 + (a - 1)^2), a the deviation and b the mean of what a "
            "BatchNorm in eval mode makes of its input before weight and bias: 0 where its running "
            "statistics are the input's. Taken as rarely as vectors."
        ),
    ),
    (
        "zero_rows",
        "1",
        say(
            "Fraction of the vectors given to a BatchNorm of sequences or features in training "
            "that are all zeros. Taken as rarely as vectors."
        ),
    ),
    (
        "group",
        "1",
        say(
            "Elements that share a mean and a variance in a normalization; taken in the first two "
            "measured steps."
        ),
    ),
    (
        "feature_axis",
        "1",
        say(
            "Axis, from 0, of a LayerNorm's or BatchNorm's input that holds the features of the "
            "layer before it, read off the autograd graph in the first two measured steps."
        ),
    ),
    (
        "own_axis",
        "1",
        say(
            "Axis, from 0, that such a layer takes for that of the features: 1 for BatchNorm, the "
            "first of those that it normalizes over for LayerNorm."
        ),
    ),
)
