"""Every collector there is, in the order they are told of each moment."""

from __future__ import annotations

from traindx.capture.collectors import Collector
from traindx.capture.collectors.activations import Activations, OnGradient
from traindx.capture.collectors.attention import Attentions, Beginnings
from traindx.capture.collectors.batch_share import BatchShare
from traindx.capture.collectors.gradients import Gradients
from traindx.capture.collectors.input import Inputs
from traindx.capture.collectors.layout import Layout
from traindx.capture.collectors.norms import Norms
from traindx.capture.collectors.units import Units
from traindx.capture.collectors.updates import Updates
from traindx.capture.recorder import Recorder


def collectors(
    recorder: Recorder, on_gradient: OnGradient, calls: Beginnings
) -> tuple[Collector, ...]:
    """One of each.

    Args:
        recorder: Where statistics go.
        on_gradient: Told of an output's place, step and gradient when backward reaches it.
        calls: Tells when a call began.
    """
    return (
        Inputs(recorder),
        Activations(recorder, on_gradient),
        BatchShare(recorder),
        Units(recorder),
        Attentions(recorder, calls),
        Gradients(recorder),
        Updates(recorder),
        Norms(recorder),
        Layout(recorder),
    )
