"""What is noted to be drawn as it is: vectors, each with what an entry of it stands for."""

from __future__ import annotations

from traindx.messages import Message, say

BINS = 32
"""Bins of the histograms of `probe.output_histogram` and its like."""
PROBABILITIES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""Of the numbers of `probe.output_quantiles` and its like."""

PICTURED: tuple[tuple[str, str | Message, Message, Message], ...] = (
    *(
        (
            f"probe.{name}_{form}",
            unit,
            say(
                "Before training: {form} of {what}, over up to about 65,536 elements.",
                form=words,
                what=what,
            ),
            entries,
        )
        for name, what in (
            ("output", say("the module's output")),
            ("gradient", say("the gradient of the loss with respect to the module's output")),
            ("weight", say("the module's weight")),
        )
        for form, unit, words, entries in (
            (
                "histogram",
                say("elements"),
                say("a histogram"),
                say(
                    "the two ends, the fraction of exact zeros, that of NaN and infinities, then "
                    "32 bins of all others; 0.2 % are beyond either end"
                ),
            ),
            (
                "quantiles",
                say("as the tensor's"),
                say("quantiles"),
                say("the least element, 1, 5, 25, 50, 75, 95, 99 %, and the greatest"),
            ),
        )
    ),
    (
        "first_layer.weights",
        say("as the parameter's"),
        say(
            "Weights of the first linear layer or convolution, at most 49,152 of at most 64 units: "
            "before training in a preflight, at the end in a run."
        ),
        say("a weight; the `observed` event at the same place tells their shape"),
    ),
)
"""Rows of the vocabulary, `traindx.quantities`."""
