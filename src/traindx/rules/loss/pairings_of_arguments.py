"""How a loss function is called where its pair looks right: the second table behind L003."""

from __future__ import annotations

from collections.abc import Callable

from traindx.findings import Severity
from traindx.messages import say
from traindx.rules.loss.pairings import Fault, Seen

_ONE_SIDED = (
    *("cross_entropy", "nll_loss", "kl_div", "binary_cross_entropy", "poisson_nll_loss"),
    *("binary_cross_entropy_with_logits", "gaussian_nll_loss"),
)
"""Losses of which the second argument is what the first should become."""
_POSITIVE = ("Exp", "Softplus", "Relu", "Sigmoid")
_SMOOTHED = 0.5
"""Of a target, what label smoothing may take away from its class at most."""
_RATIO = 3.0
"""How many times as frequent one class must be as another before weights are judged."""
_SLOPE = 0.5
"""The power of their frequencies by which weights go the wrong way."""
_ROW = 1.01


def _swapped(seen: Seen) -> Fault | None:
    learned = (bool(seen.flag("prediction_learned")), bool(seen.flag("target_learned")))
    if seen.function not in _ONE_SIDED or learned != (False, True):
        return None
    return Fault(
        say(
            "`{loss}` is given the target first and the output second",
            loss=seen.function,
        ),
        say("It is not the same both ways: it takes the output first."),
        say("loss = loss_function(output, target)"),
    )


def _exponential_twice(seen: Seen) -> Fault | None:
    if seen.function != "poisson_nll_loss":
        return None
    if seen.flag("log_input") and seen.made_by in _POSITIVE:
        return Fault(
            say(
                "`poisson_nll_loss` takes the logarithm of the rate, and is given what a "
                "{activation} has made positive",
                activation=seen.made_by.lower(),
            ),
            say("The loss takes the exponential itself, so that the rate is never below 1."),
            say(
                "Leave the {activation} out, or say `log_input=False`.",
                activation=seen.made_by.lower(),
            ),
        )
    if not seen.flag("log_input") and seen.number("prediction_min") < 0:
        return Fault(
            say(
                "`poisson_nll_loss` is told that it is given rates, and they go down to {low:.4g}",
                low=seen.number("prediction_min"),
            ),
            say("A rate is positive, and a negative one has no logarithm."),
            say("End the model with an exponential or softplus, or say `log_input=True`."),
        )
    return None


def _logarithms_as_target(seen: Seen) -> Fault | None:
    if seen.function != "kl_div":
        return None
    if not seen.flag("log_target") and seen.number("target_min") < 0:
        return Fault(
            say(
                "`kl_div` takes probabilities as its target, and is given numbers from {low:.4g}",
                low=seen.number("target_min"),
            ),
            say("Logarithms of probabilities must be announced, or the loss is not a divergence."),
            say('loss = F.kl_div(output, target, log_target=True, reduction="batchmean")'),
        )
    if seen.flag("log_target") and seen.number("target_max") > 0 <= seen.number("target_min"):
        return Fault(
            say("`kl_div` is told that its target is logarithms, and it is never below 0"),
            say("The loss takes the exponential of what are probabilities already."),
            say('loss = F.kl_div(output, target, reduction="batchmean")'),
        )
    return None


def _several_classes(seen: Seen) -> Fault | None:
    most = seen.number("most_of_a_row")
    if not most > _ROW:
        return None
    return Fault(
        say(
            "`cross_entropy` takes one class, or probabilities that sum to 1, and is given rows of "
            "several classes that sum to up to {most:.4g}",
            most=most,
        ),
        say("Its softmax lets classes compete, so that no two of them can both be sure."),
        say(
            "Of labels that can hold together use `binary_cross_entropy_with_logits`; divide votes "
            "by their sum."
        ),
    )


def _blank_in_text(seen: Seen) -> Fault | None:
    blanks, symbols = seen.number("blanks"), seen.number("symbols")
    if not blanks > 0:
        return None
    return Fault(
        say(
            "{blanks} of the {symbols} symbols that `ctc_loss` is to find are its blank",
            blanks=int(blanks),
            symbols=int(symbols),
        ),
        say("The blank stands for no symbol, so that this one is never written."),
        say("Give the blank a number of its own: `nn.CTCLoss(blank=len(symbols))`."),
    )


def _text_too_long(seen: Seen) -> Fault | None:
    long, texts = seen.number("too_long"), seen.number("texts")
    if not long > 0:
        return None
    return Fault(
        say(
            "{long} of the {texts} texts that `ctc_loss` is to find are longer than the frames it "
            "is given for them",
            long=int(long),
            texts=int(texts),
        ),
        say("No alignment exists then: the loss is infinite, or 0 with `zero_infinity`."),
        say("Shorten the signal less, or leave those texts out."),
        Severity.ERROR if long > texts / 2 else Severity.WARNING,
    )


def _similarity(seen: Seen) -> Fault | None:
    if seen.function != "cosine_similarity":
        return None
    return Fault(
        say("the loss is nothing but a cosine similarity to the target, and grows with it"),
        say("To make it small is to point away from the target."),
        say("loss = 1 - F.cosine_similarity(output, target).mean()"),
        Severity.WARNING,
    )


def _through_the_target(seen: Seen) -> Fault | None:
    if not seen.flag("bootstrapped"):
        return None
    return Fault(
        say(
            "the target of `{loss}` is a number plus a discounted output of the model, and the "
            "gradient goes through it",
            loss=seen.function,
        ),
        say("The estimate of what follows is moved towards what is, instead of the other way."),
        say("target = reward + discount * value_of_next.detach()"),
        Severity.WARNING,
    )


def _smoothed_away(seen: Seen) -> Fault | None:
    smoothing = seen.number("label_smoothing")
    if not smoothing > _SMOOTHED:
        return None
    return Fault(
        say(
            "a label smoothing of {smoothing:.3g} takes more of each target from its class than "
            "it leaves there",
            smoothing=smoothing,
        ),
        say("It is the part that is spread over all classes, and not the one that is kept."),
        say("nn.CrossEntropyLoss(label_smoothing={kept:.3g})", kept=1 - smoothing),
        Severity.WARNING,
    )


def _weights_the_wrong_way(seen: Seen) -> Fault | None:
    slope, ratio = seen.number("weight_slope"), seen.number("class_ratio")
    if not (slope > _SLOPE and ratio > _RATIO):
        return None
    return Fault(
        say(
            "the classes that are most frequent have the largest weights: one is {ratio:.0f} times "
            "as frequent as another, and weights grow with the power {slope:.2g} of that",
            ratio=ratio,
            slope=slope,
        ),
        say("Weights are to make up for rare classes, and these hide them all the more."),
        say("weight = counts.sum() / counts  # pos_weight = negatives / positives"),
        Severity.WARNING,
    )


def _cut_to_whole(seen: Seen) -> Fault | None:
    low, high = seen.number("target_min"), seen.number("target_max")
    values, zeros = seen.number("target_values"), seen.number("target_zeros")
    few = 4 <= values <= 12 and low < 0 < high and zeros >= 0.5
    if seen.function not in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss") or not few:
        return None
    if not seen.flag("target_whole"):
        return None
    return Fault(
        say(
            "the targets of `{loss}` are the whole numbers from {low:.4g} to {high:.4g}, and "
            "{zeros:.0%} of them are 0",
            loss=seen.function,
            low=low,
            high=high,
            zeros=zeros,
        ),
        say("What lay between was cut off by a cast to whole numbers, as of scaled targets."),
        say("target = torch.as_tensor(values, dtype=torch.float32)  # not long() or int()"),
        Severity.WARNING,
    )


FIRST: tuple[Callable[[Seen], Fault | None], ...] = (
    _swapped,
    _exponential_twice,
    _logarithms_as_target,
    _several_classes,
    _blank_in_text,
    _text_too_long,
    _similarity,
)
"""Asked before the pair is looked at."""

LAST: tuple[Callable[[Seen], Fault | None], ...] = (
    _through_the_target,
    _smoothed_away,
    _weights_the_wrong_way,
    _cut_to_whole,
)
"""Asked where the pair goes together."""
