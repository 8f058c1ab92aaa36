"""Why an operation gives what is not finite, and what to write in its place."""

from __future__ import annotations

from traindx.messages import Message, say


def cause_of(phase: str, operation: str) -> Message:
    """Why, in one sentence."""
    match phase:
        case "input":
            return say("The data holds NaN or infinity: a failed reading, or a division by zero.")
        case "parameter":
            return say("The step was too large for the number format, or divided by zero.")
        case "backward":
            return _cause_in_backward(_family(operation))
        case "":
            return say("An operation there left the range of its definition or of its format.")
        case _:
            return _cause_in_forward(_family(operation))


def _cause_in_forward(family: str) -> Message:
    match family:
        case "log":
            return say("The logarithm of 0 is -inf, and that of a negative number is NaN.")
        case "sqrt":
            return say("The root of a negative number is NaN, and 1/sqrt(0) is infinite.")
        case "div":
            return say("Something is divided by 0, or by a number close to it.")
        case "exp":
            return say("The exponential overflows: in float32 above 88.7, in float16 above 11.")
        case "softmax":
            return say("A row of the softmax has nothing but -inf: every position is masked.")
        case "targets":
            return say("Every target of the batch is ignored: the mean over none of them is 0/0.")
        case _:
            return say("The result is outside the range of its number format, or undefined.")


def _cause_in_backward(family: str) -> Message:
    match family:
        case "sqrt":
            return say("The derivative of a root or a norm at 0 is infinite, and 0 times it NaN.")
        case "log":
            return say("The derivative of the logarithm at 0 is infinite, and 0 times it NaN.")
        case "div":
            return say("The derivative of a quotient divides by the square of a number close to 0.")
        case _:
            return say("The derivative is infinite or undefined there, though the value is not.")


def fix_of(phase: str, operation: str) -> Message:
    """What to write, to be pasted."""
    if phase == "input":
        return say(
            "# before training\n"
            "assert torch.isfinite(inputs).all(), (~torch.isfinite(inputs)).nonzero()[:5]"
        )
    if phase == "parameter":
        return say(
            "# before optimizer.step(), and a lower lr\n"
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
        )
    return _fix_in(_family(operation))


def _fix_in(family: str) -> Message:
    match family:
        case "log":
            return say(
                "torch.log(x.clamp_min(1e-8))  # or log_softmax, logsigmoid, log1p, where they fit"
            )
        case "sqrt":
            return say("torch.sqrt(x.clamp_min(0) + 1e-12)  # a norm: (x * x).sum(-1) inside")
        case "div":
            return say("x / y.clamp_min(1e-8)  # for y >= 0")
        case "exp":
            return say("torch.exp(x.clamp_max(80))  # or subtract the maximum first")
        case "softmax":
            return say("mask[mask.all(-1)] = False  # leave each row at least one position")
        case "targets":
            return say("if (targets != -100).any():  # only then\n    loss.backward()")
        case _:
            return say(
                "Bound what goes in (`clamp`), or compute in float32; lower the learning rate if "
                "the inputs have grown."
            )


_FAMILIES = {
    "log": ("log", "log2", "log10", "log1p", "xlogy", "logit"),
    "sqrt": ("sqrt", "rsqrt", "norm", "linalg_vector_norm", "cdist", "std", "pow"),
    "div": ("div", "reciprocal", "true_divide", "addcdiv"),
    "exp": ("exp", "exp2", "expm1", "sinh", "cosh"),
    "softmax": ("softmax", "log_softmax"),
    "targets": ("nll_loss_without_targets",),
}


def _family(operation: str) -> str:
    return next((family for family, names in _FAMILIES.items() if operation in names), "")
