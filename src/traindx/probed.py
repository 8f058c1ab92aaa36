"""What probes measure before training, at step -1: the name behind `probe.`, unit and meaning."""

from __future__ import annotations

from traindx.messages import Message, say

PROBED: tuple[tuple[str, str | Message, Message], ...] = (
    (
        "initial_loss",
        say("as the user's"),
        say("Before training: the loss function's own value on a batch, per term, without others."),
    ),
    (
        "chance_loss",
        say("as the user's"),
        say("What it would be for a guess that looks at nothing: ln C of C classes."),
    ),
    (
        "logit_std",
        say("as the tensor's"),
        say("Before training: standard deviation of what the loss function is given."),
    ),
    (
        "overfit_fraction",
        "1",
        say(
            "What is left of the data loss on a few samples after training on them alone, over "
            "that of the best guess that does not look at the input."
        ),
    ),
    ("overfit_steps", "1", say("Steps that this training took.")),
    (
        "gradient_error",
        "1",
        say(
            "Relative error of autograd's derivative along random directions of all parameters, "
            "beside centred differences in float64: the greatest."
        ),
    ),
    (
        "parameter_gradient_error",
        "1",
        say("The same along a random direction of one parameter."),
    ),
    (
        "penalty_slope",
        say("as the user's"),
        say("Change of the loss of the same output when all parameters are doubled."),
    ),
    (
        "loss_slope",
        "1",
        say(
            "With which power of the batch's size the loss grows, from half of a batch to all of "
            "it: 0 of a mean, 1 of a sum."
        ),
    ),
    (
        "first_step",
        "1",
        say("Norm of the first step of gradient descent over that of the weights it moves."),
    ),
    (
        "target_copies",
        "1",
        say("Features that are the target, and sequences that are their own."),
    ),
    (
        "neighbours_alike",
        "1",
        say("How often samples half a batch apart are of one class, in the data's order."),
    ),
    ("any_two_alike", "1", say("How often any two of these samples are.")),
    (
        "random_part",
        say("as the tensor's"),
        say("Standard deviation of a sample's elements from one time it is read to the next."),
    ),
    (
        "lasting_part",
        say("as the tensor's"),
        say("The same from sample to sample, of what is the same each time."),
    ),
    (
        "workers_alike",
        "1",
        say("1 if two workers of the loader draw the same random numbers, 0 if not."),
    ),
    (
        "passes_alike",
        "1",
        say("1 if two passes over the loader begin with the same random numbers, 0 if not."),
    ),
    (
        "turned_alone",
        "1",
        say("Readings in which one of picture and mask is turned and the other is not."),
    ),
    ("turned_together", "1", say("Readings in which both are turned.")),
    (
        "evaluation_random",
        "1",
        say("The part of a loader's samples that are other inputs each time they are read."),
    ),
    (
        "label_agreement",
        say("standard deviations"),
        say(
            "How far labels follow from their own inputs by two cheap learners, beside labels in "
            "random order: the stronger of both."
        ),
    ),
    (
        "label_agreement_shifted",
        say("standard deviations"),
        say("The same of the labels of a row up to three before or after: the most."),
    ),
    (
        "padding_counted",
        "1",
        say(
            "The part of a sequence's padding, its first and last position aside, with a gradient."
        ),
    ),
    (
        "classes_left_out",
        "1",
        say("Classes whose samples have no gradient, though all others have."),
    ),
    (
        "batch_mixing",
        "1",
        say(
            "How far, of its RMS, the output for a sample moves in evaluation when only "
            "the other samples of the batch are changed."
        ),
    ),
    ("batch_mixing_training", "1", say("The same in training.")),
    (
        "future_leak",
        "1",
        say(
            "How far, of its RMS, the output at earlier positions moves when only later "
            "inputs are changed, of a model that predicts the next."
        ),
    ),
    (
        "padding_leak",
        "1",
        say(
            "How far, of its RMS, the output at real positions moves when only what is "
            "masked as padding is changed."
        ),
    ),
    (
        "eval_change",
        "1",
        say("How far, of its RMS, the output moves in evaluation from call to call."),
    ),
    (
        "reread_loss",
        "1",
        say(
            "Before training: the data loss over that of the best guess that does not look at the "
            "input, with weights read in the other order that fits best; of a model that does not "
            "fit as it is."
        ),
    ),
    (
        "mode_gap",
        "1",
        say(
            "How far, of its RMS, the output in training lies from that in evaluation, "
            "before training."
        ),
    ),
    (
        "unexplained_mode_gap",
        "1",
        say(
            "What is left of it when dropout does what it does on average, and batch "
            "normalization uses its running statistics."
        ),
    ),
    (
        "variance_shift",
        "1",
        say(
            "Variance that a batch normalization is given in training, with dropout before it, "
            "over that without dropout, as in evaluation."
        ),
    ),
    (
        "softmax_weights",
        "1",
        say("Places where weights of a softmax are multiplied with something and summed."),
    ),
    (
        "term_left",
        "1",
        say(
            "What is left of a term of the loss after a short training on all of it, over what a "
            "guess gets: the most."
        ),
    ),
    ("term_alone", "1", say("The same after training on that term alone.")),
    (
        "score_bound",
        "1",
        say("The greatest size that the similarities in the loss can have."),
    ),
    (
        "least_loss",
        "1",
        say("The least cross-entropy that they allow, over that of a guess."),
    ),
    ("moved_axes", "1", say("Reshapes after which an axis lies elsewhere among the others.")),
    (
        "softmax_off",
        "1",
        say("How far from 1 the weights of one such sum are in all, at most."),
    ),
    (
        "output_rms",
        say("as the tensor's"),
        say("RMS of a layer's output before training."),
    ),
    (
        "expected_rms",
        say("as the tensor's"),
        say("What theory expects of it from the layer's input."),
    ),
    (
        "gradient_rms",
        say("as the tensor's"),
        say(
            "RMS of the gradient at a layer's output before training, of a random "
            "direction at the network's."
        ),
    ),
    (
        "gradient_fall",
        "1",
        say("Norm of that gradient at the first layer with weights over that at the last."),
    ),
    (
        "signal_growth",
        "1",
        say("RMS of the output of the last layer with weights but one over that of the first."),
    ),
    (
        "width_exponent",
        "1",
        say(
            "Power of the model's width with which the change (RMS) of a layer's output in a few "
            "steps grows."
        ),
    ),
    (
        "fp16_flushed",
        "1",
        say(
            "Fraction of the entries of a parameter's gradient that are 0 in the training's "
            "float16, with its loss scale, and are not in float64."
        ),
    ),
    (
        "fp16_lost",
        "1",
        say("The part of the gradient's norm that those entries have in float64."),
    ),
    (
        "half_nonfinite",
        "1",
        say(
            "Elements of a layer's output that are not finite in the training's precision, "
            "and are in float64."
        ),
    ),
    ("half_error", "1", say("How far, of its RMS, a layer's output lies from float64's.")),
    ("lr", "1", say("The learning rate of the optimizer's first group, before training.")),
    (
        "lr_low",
        "1",
        say("The least learning rate that is worth trying, by short runs on one batch."),
    ),
    (
        "lr_high",
        "1",
        say("The greatest learning rate that is worth trying, by the same runs."),
    ),
)
"""Rows of the vocabulary, `traindx.quantities`."""
