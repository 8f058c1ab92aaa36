"""L009: validation is done on samples that are trained on."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_NATURAL = 2.0
"""How many times the share of copies within training the overlap must exceed."""


@rule("L009", severity=Severity.ERROR, reads=("probe.overlap",), source="probe")
def train_validation_overlap(
    run: Run, *, share: float = 0.01, error_share: float = 0.1, samples: float = 20
) -> Iterator[Evidence]:
    """Samples of a validation or test set are in the training set, too.

    ## Why it matters
    A measure on samples that the network was trained on tells how well it remembers, not how well
    it does on new ones: overfitting cannot be seen, the wrong model is chosen, and the number that
    is reported is too good.

    ## How it is measured
    The inputs of the data set behind the training loader are hashed bit by bit, and those behind
    every other loader that is visible and not called a training one: tensors whole, up to 60,000
    samples, others as many as half a second reads. A share of shared samples above `share` is a
    warning, above `error_share` an error, of at least `samples` samples. It must be twice the share
    of copies within the training set itself, since small or discrete inputs coincide by nature.

    ## How to fix
    Split once, before anything else, by index or by a fixed seed: `train, val = random_split(data,
    [0.9, 0.1], generator=torch.Generator().manual_seed(0))`. Remove copies before the split. Split
    by person, document or source where several samples come from one.

    ## False alarms
    A loader for measuring on training samples is left out if its variable's name contains `train`.
    Data that are augmented or generated anew each time cannot be compared, and are not. Near copies
    (another crop, another frame) are not found.

    ## References
    Kapoor & Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
    (2023). Barz & Denzler, "Do we train on test data? Purging CIFAR of near-duplicates" (2020).
    """
    for seen in observations(run, "data-splits"):
        overlap = run.at("probe.overlap", seen.site)
        if overlap is None or seen.number("samples") < samples:
            continue
        natural = _NATURAL * seen.number("repeated")
        if overlap.last > max(share, natural):
            yield _evidence(seen, overlap.last, overlap.last > error_share)


def _evidence(seen: Observation, share: float, grave: bool) -> Evidence:
    same = bool(seen.detail.get("same_object"))
    return Evidence(
        site=Site(seen.site.model, seen.site.fqn),
        step=STEP,
        message=say(
            "{share:.1%} of {samples} samples of `{loader}` are in the training data",
            share=share,
            samples=int(seen.number("samples")),
            loader=seen.site.fqn,
        ),
        numbers={
            "share": share,
            "samples": seen.number("samples"),
            "training_samples": seen.number("training"),
            "copies_in_training": seen.number("repeated"),
        },
        cause=say("Both loaders are made of the same data set.")
        if same
        else say("The data were split after copies were made, or twice at random."),
        fix=say("Split once, by index, before anything else is done to the data."),
        excluded=(say("copies that are natural to the data"),),
        severity=Severity.ERROR if grave else Severity.WARNING,
    )
