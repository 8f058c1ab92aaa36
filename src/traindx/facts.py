"""A training run described without torch: what was built, not what was measured.

Facts are written once a model, an optimizer or a loss is known, and again when they change.
They are plain data, so a saved run can be judged where torch is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Json = bool | int | float | str | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """One module of a model.

    Attributes:
        fqn: Dotted path inside the model; empty for the model itself.
        kind: Class name, such as `BatchNorm2d`.
        order: Position of its first call in the forward pass; None if it was never seen called.
        calls: Calls per forward pass on the step described; 0 if it was never seen called.
        options: Constructor settings worth noting (`eps`, `momentum`, `p`, …).
    """

    fqn: str
    kind: str
    order: int | None = None
    calls: int = 0
    options: dict[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What lies on the ways of the gradient, in the autograd graph, from the loss to a parameter.

    Attributes:
        sigmoids: Sigmoid operations on the path with the fewest; each multiplies the gradient by at
            most 1/4.
        norms: Normalization operations on that path, which rescale the gradient by 1/std.
        log10_bound: Base-10 logarithm of a bound on the gradient that arrives where the parameter
            is used: the sum over all backward paths of the product of 1/4 per sigmoid and the
            spectral norm of each weight matrix passed. None where some path holds an operation
            of unknown gain. Norms are read only where some parameter of the loss has 4 `sigmoids`
            or more and a bound; elsewhere they count as 1.
    """

    sigmoids: int
    norms: int
    log10_bound: float | None


@dataclass(frozen=True, slots=True)
class ParamFacts:
    """One parameter of a model.

    Attributes:
        fqn: Dotted path inside the model.
        shape: Its shape.
        dtype: Its dtype without the `torch.` prefix.
        trainable: `requires_grad` when described.
        optimizers: Names of the optimizers that hold it.
        path: What lies on the ways back to it; None if the graph was not walked or ends before it.
    """

    fqn: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    optimizers: tuple[str, ...] = ()
    path: PathFacts | None = None

    @property
    def module(self) -> str:
        """The fqn of the module that owns it."""
        return self.fqn.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model: its modules and parameters, in registration order.

    Attributes:
        name: The variable's name in the calling frame where there is one, else the class name.
        kind: Class name.
        compiled: Whether torch.compile runs it, so that no activation can be measured.
    """

    name: str
    kind: str
    modules: tuple[ModuleFacts, ...]
    params: tuple[ParamFacts, ...]
    compiled: bool = False

    def in_network_order(self) -> list[ModuleFacts]:
        """Its modules by their first call; those never seen called last, as registered."""
        return sorted(self.modules, key=lambda module: (module.order is None, module.order or 0))


@dataclass(frozen=True, slots=True)
class OptimizerFacts:
    """One optimizer.

    Attributes:
        name: Unique name, the class name unless there are several.
        kind: Class name.
        groups: Settings of each parameter group (`lr`, `momentum`, `weight_decay`, …).
        num_params: Tensors it holds.
        stale: Shapes of tensors it holds that belong to no living module and get no gradient.
        unheld: Parameters `model/fqn` that got a gradient but that no optimizer holds.
    """

    name: str
    kind: str
    groups: tuple[dict[str, Json], ...]
    num_params: int
    stale: tuple[tuple[int, ...], ...] = ()
    unheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What one operand of the loss looked like on one batch.

    Attributes:
        shape: Its shape.
        dtype: Its dtype without the `torch.` prefix.
        operation: The autograd operation that made it (`AddmmBackward0`), empty for a leaf.
        min: Least element.
        max: Greatest element.
        integers: Whether every element is a whole number.
        rows_sum_to_one: Whether it is non-negative and sums to 1 over axis 1 (probabilities).
    """

    shape: tuple[int, ...]
    dtype: str
    operation: str
    min: float
    max: float
    integers: bool
    rows_sum_to_one: bool


@dataclass(frozen=True, slots=True)
class LossFacts:
    """What went into one loss.

    Attributes:
        models: Names of the models its gradient reaches, joined by `+`.
        operation: The autograd operation that made the scalar given to backward.
        loss: The loss operation found behind it (`NllLossBackward0`), empty if none is known.
        prediction: What was compared, as the loss operation received it.
        target: What it was compared with.
    """

    models: str
    operation: str
    loss: str
    prediction: TensorFacts | None
    target: TensorFacts | None


Facts = ModelFacts | OptimizerFacts | LossFacts
