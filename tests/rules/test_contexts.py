"""Contexts: how each is inferred, with a near miss, and how rules fall silent in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import traindx
from tests.rules.recording import Recording, batchnorm_net, chain, weight
from traindx.errors import UsageError
from traindx.facts import Json, ModelFacts, ModuleFacts, OptimizerFacts, ParamFacts
from traindx.findings import Context, Evidence, Severity
from traindx.records import RUN, Event, EventKind, Point, Record, Scalar, Site, TensorStats
from traindx.rules.catalog import catalog
from traindx.rules.contexts import contexts_of, known, names
from traindx.rules.engine import Engine, judge
from traindx.rules.judging import Judging
from traindx.rules.rule import Rule, rule
from traindx.run import Run

WHOLE = Site("net")
NO_LIMIT = None


def inferred(name: str, recording: Recording) -> list[Context]:
    return contexts_of(Run(recording.items), name)


def places(name: str, recording: Recording) -> list[tuple[str, str]]:
    return [(context.site.model, context.site.fqn) for context in inferred(name, recording)]


# -- warmup --------------------------------------------------------------------------------------


def rates(*values: float, apart: int = 1) -> Recording:
    recording = Recording(chain(2))
    for i, value in enumerate(values):
        recording.scalar(i * apart, "lr", value, "SGD", model="")
    return recording


def test_a_rate_that_rises_to_twice_its_start_is_a_warmup():
    (context,) = inferred("warmup", rates(0.1, 0.15, 0.2))
    assert context == Context(
        "warmup", "the learning rate of SGD rose from 0.1 to 0.2", RUN, 0, None
    )


def test_of_several_optimizers_the_warmup_is_that_of_one_and_its_models():
    recording = rates(0.1, 0.2)
    for step in range(2):
        recording.scalar(step, "lr", 0.1, "Adam", model="")
    assert places("warmup", recording) == [("", "SGD"), ("net", "")]


@pytest.mark.parametrize(
    ("values", "last_step"),
    [
        ((0.1, 0.2, 0.4), NO_LIMIT),
        ((0.1, 0.2, 0.4, 0.4), 19),
        ((0.1, 0.2, 0.4, 0.3, 0.9), 19),
        ((0.1, 0.4, 0.4, 0.8), NO_LIMIT),
        ((0.0, 0.4, 0.1), 9),
    ],
)
def test_a_warmup_ends_before_the_step_at_which_its_rise_is_over(
    values: tuple[float, ...], last_step: int | None
):
    assert inferred("warmup", rates(*values, apart=10))[0].last_step == last_step


@pytest.mark.parametrize("values", [(0.1, 0.1), (0.1, 0.19), (0.2, 0.1), (0.2, 0.1, 0.9), (0, 0)])
def test_a_rate_that_does_not_rise_to_twice_its_start_is_no_warmup(values: tuple[float, ...]):
    assert inferred("warmup", rates(*values)) == []


# -- frozen, pretrained, frozen-bn ---------------------------------------------------------------


def model_of(*params: ParamFacts, modules: Iterable[ModuleFacts] = ()) -> ModelFacts:
    return ModelFacts("net", "Net", (ModuleFacts("", "Net", 0, 1), *modules), params)


def test_the_largest_subtrees_without_a_gradient_are_frozen():
    params = (
        weight("body.a", trainable=False),
        weight("body.b", trainable=False),
        weight("head", trainable=False),
        weight("head", name="bias"),
        weight("tail"),
    )
    model = model_of(*params)
    assert places("frozen", Recording(model)) == [("net", "body"), ("net", "head.weight")]
    assert inferred("frozen", Recording(model))[0].reason == (
        "2 of its parameters require no gradient"
    )


def test_a_model_without_any_gradient_is_frozen_as_a_whole():
    assert places("frozen", Recording(model_of(weight("a", trainable=False)))) == [("net", "")]
    assert places("frozen", Recording(chain(3))) == []


def counting(tracked: int, updates: int, *, began: int = 0, measured: int = 0) -> Recording:
    recording = Recording(batchnorm_net("bn"))
    recording.scalar(began, "loss", 1.0)
    recording.scalar(measured, "norm.tracked", tracked, "bn")
    recording.scalar(measured + 1, "norm.updates", updates, "bn")
    return recording


@pytest.mark.parametrize(
    ("recording", "batches"),
    [
        (counting(101, 1), 100),
        (counting(45, 0, began=90, measured=95), 45),
        (counting(36, 1, began=90, measured=95), 30),
    ],
)
def test_normalizations_that_had_counted_before_the_first_step_are_pretrained(
    recording: Recording, batches: int
):
    (context,) = inferred("pretrained", recording)
    assert context.site == WHOLE
    assert context.reason == f"its normalization layers had seen {batches} batches"


@pytest.mark.parametrize(
    "recording",
    [counting(1, 1), counting(4, 4), counting(8, 1), counting(16, 1, measured=15)],
)
def test_counts_of_the_models_own_steps_and_of_a_trial_pass_are_not(recording: Recording):
    assert inferred("pretrained", recording) == []


@pytest.mark.parametrize(("fixed", "found"), [(2, True), (1, False)])
def test_a_model_of_which_most_is_frozen_is_pretrained(fixed: int, found: bool):
    params = [weight(str(i), trainable=i >= fixed) for i in range(3)]
    assert bool(inferred("pretrained", Recording(model_of(*params)))) is found


@pytest.mark.parametrize(
    ("flags", "affine_frozen", "found"),
    [((0, 0), True, True), ((0, 0), False, False), ((1, 0), True, False)],
)
def test_normalizations_frozen_from_the_start_are_frozen_bn(
    flags: tuple[int, ...], affine_frozen: bool, found: bool
):
    recording = Recording(batchnorm_net("bn1", "bn2", affine_frozen=affine_frozen))
    for step, flag in enumerate(flags):
        for fqn in ("bn1", "bn2"):
            recording.scalar(step, "norm.training", flag, fqn)
    assert (places("frozen-bn", recording) == [("net", "")]) is found


# -- how the steps are taken ---------------------------------------------------------------------


@pytest.mark.parametrize(("passes", "found"), [(4, True), (1, False)])
def test_more_backward_passes_than_optimizers_are_an_accumulation(passes: int, found: bool):
    recording = Recording(OptimizerFacts("SGD", "SGD", (), 2))
    for step in range(5):
        recording.scalar(step, "backwards", passes, model="")
    assert bool(inferred("accumulating", recording)) is found


def test_the_two_passes_of_a_gan_are_no_accumulation():
    recording = Recording(*(OptimizerFacts(name, "Adam", (), 2) for name in ("a", "b")))
    recording.scalar(0, "backwards", 2, model="")
    assert inferred("accumulating", recording) == []


def test_a_skipped_step_is_a_context_of_that_step_alone():
    recording = Recording()
    for step in (3, 8):
        recording.event(step, EventKind.AMP_SKIPPED, optimizer="SGD")
    (context,) = inferred("amp-skipped", recording)
    assert (context.site, context.first_step, context.last_step) == (RUN, 8, 8)
    assert [context.covers(WHOLE, step) for step in (7, 8, 9)] == [False, True, False]


def two_models(*losses: str, shared: bool = False) -> Recording:
    nets = [
        replace(chain(1), name=name, params=(replace(weight("0"), optimizers=(opt,)),))
        for name, opt in (("g", "Adam"), ("d", "Adam" if shared else "Adam-2"))
    ]
    recording = Recording(*nets)
    for models in losses:
        recording.scalar(0, "loss", 1.0, model=models)
    return recording


@pytest.mark.parametrize(
    ("losses", "shared", "found"),
    [
        (("d", "g+d"), False, True),
        (("d", "d+g"), False, True),
        (("d", "g"), False, False),
        (("g+d",), False, False),
        (("d", "g+d"), True, False),
    ],
)
def test_a_model_trained_through_another_that_has_a_loss_of_its_own_is_a_gan(
    losses: tuple[str, ...], shared: bool, found: bool
):
    assert bool(inferred("gan", two_models(*losses, shared=shared))) is found


# -- layers of a kind of their own ---------------------------------------------------------------


def sizes(head: Iterable[float], fqn: str = "block.out.weight") -> Recording:
    owner, _, name = fqn.rpartition(".")
    recording = Recording(model_of(weight("block.in"), weight(owner, name=name)))
    for step, size in enumerate(head):
        recording.scalar(step, "param.rms", 1.0, "block.in.weight")
        recording.scalar(step, "param.rms", size, fqn)
    return recording


def test_a_weight_that_was_zero_excuses_its_branch_until_it_has_grown():
    (context,) = inferred("zero-init", sizes((0, 0.01, 0.05, 0.2, 0.3)))
    assert (context.site, context.last_step) == (Site("net", "block"), 2)


def test_a_weight_that_stays_at_zero_excuses_its_branch_for_100_steps():
    assert inferred("zero-init", sizes([0.0] * 150))[0].last_step == 100


def test_a_weight_that_does_not_start_at_zero_or_a_bias_that_does_is_no_zero_init():
    assert inferred("zero-init", sizes((0.01, 0.0))) == []
    assert inferred("zero-init", sizes((0.0, 0.1), "block.out.bias")) == []


def test_adapters_are_known_by_their_names():
    params = [weight("q.base", trainable=False), weight("q.lora_A"), weight("q.lora_B")]
    assert places("lora", Recording(model_of(*params))) == [("net", "q")]
    assert places("lora", Recording(model_of(weight("floral_a"), weight("q")))) == []


@pytest.mark.parametrize(
    ("rank", "frozen", "found"), [(4, True, True), (16, True, False), (4, False, False)]
)
def test_adapters_are_known_by_their_shapes(rank: int, frozen: bool, found: bool):
    shapes = {"q.down": (rank, 32), "q.up": (48, rank)}
    pair = [replace(weight(fqn), shape=shape) for fqn, shape in shapes.items()]
    base = replace(weight("q.base", trainable=not frozen), shape=(48, 32))
    assert (places("lora", Recording(model_of(base, *pair))) == [("net", "q")]) is found


@pytest.mark.parametrize(("looked_up", "found"), [(500, True), (501, False)])
def test_an_embedding_of_which_a_step_looks_up_half_or_less_is_sparse(looked_up: int, found: bool):
    options: dict[str, Json] = {"num_embeddings": 1000, "embedding_dim": 8}
    embedding = ModuleFacts("emb", "Embedding", 1, 1, options)
    recording = Recording(model_of(weight("emb"), modules=[embedding]))
    stats = TensorStats(8 * looked_up, 0.0, 1.0, -1.0, 1.0)
    recording.items.append(Record(0, Site("net", "emb"), Point.OUTPUT, stats))
    assert (places("sparse-gradients", recording) == [("net", "emb")]) is found


# -- declared ------------------------------------------------------------------------------------


def declaring(*names: str) -> Recording:
    recording = Recording(chain(3))
    recording.items.insert(0, Event(-1, EventKind.STARTED, detail={"contexts": [*names]}))
    return recording


def test_what_the_header_declares_holds_everywhere():
    assert inferred("rl", declaring("gan", "rl")) == [Context("rl", "declared for this run")]
    assert inferred("contrastive", declaring("gan", "rl")) == []


def test_what_is_declared_for_a_check_holds_too():
    (context,) = contexts_of(Run(), "rl", [("rl", "--context")])
    assert context.reason == "declared by --context"


def test_a_header_that_is_no_list_declares_nothing():
    recording = Recording()
    recording.items.append(Event(-1, EventKind.STARTED, detail={"contexts": 3}))
    assert all(inferred(name, recording) == [] for name in names())


@pytest.mark.parametrize("written", ["frozen-bn", "FROZEN_BN", " frozen-bn "])
def test_a_context_is_known_however_it_is_written(written: str):
    assert known(written) == "frozen-bn"


def test_an_unknown_context_names_the_nearest():
    with pytest.raises(UsageError, match="no context `warmpu`; the nearest is `warmup`"):
        known("warmpu")


# -- how rules fall silent -----------------------------------------------------------------------


def alarm(*silent_in: str, hits: int = 1) -> Rule:
    @rule("G900", severity=Severity.ERROR, reads=("loss",), hits=hits, silent_in=silent_in)
    def loud(run: Run) -> Iterator[Evidence]:
        """It is loud."""
        for series in run.series("loss"):
            if series.last == 1:
                yield Evidence(series.site, series.step, "1", {"value": 1.0})

    return loud


def trained(levels: Iterable[int], rates: Iterable[float]) -> Recording:
    recording = Recording(chain(3))
    for step, (level, lr) in enumerate(zip(levels, rates, strict=True)):
        recording.scalar(step, "lr", lr, "SGD", model="")
        recording.scalar(step, "loss", level, "1")
        recording.measured(step)
    return recording


def test_a_hit_in_a_context_is_no_finding_but_is_told():
    verdict = judge(trained([0, 1], [0.1, 0.2]).items, [alarm("warmup")])
    assert verdict.findings == ()
    (silenced,) = verdict.silenced
    assert (silenced.code, silenced.site) == ("G900", Site("net", "1"))
    assert silenced.reason == "warmup: the learning rate of SGD rose from 0.1 to 0.2"
    assert {context.name for context in verdict.contexts} == {"warmup"}


def test_a_rule_that_is_not_silent_in_it_speaks_in_a_context():
    verdict = judge(trained([1, 1], [0.1, 0.2]).items, [alarm("gan")])
    assert len(verdict.findings) == 1
    assert verdict.silenced == ()


def test_what_goes_on_after_the_context_is_a_finding_from_then_on():
    recording = trained([1, 1, 1, 1, 1], [0.1, 0.2, 0.2, 0.2, 0.2])
    verdict = judge(recording.items, [alarm("warmup", hits=2)])
    (finding,) = verdict.findings
    assert (finding.first_step, finding.count) == (2, 3)
    assert verdict.silenced == ()


def test_hits_that_would_not_have_been_a_finding_are_not_told_as_silenced():
    recording = trained([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4])
    assert judge(recording.items, [alarm("warmup", hits=2)]).silenced == ()


def test_a_declared_context_silences_the_whole_run():
    recording = trained([1, 1], [0.1, 0.1])
    judging = Judging(contexts=(("gan", "--context"),))
    verdict = judge(recording.items, [alarm("gan")], judging=judging)
    assert verdict.findings == ()
    assert verdict.silenced[0].reason == "gan: declared by --context"


def test_a_context_covers_its_subtree_and_nothing_else():
    context = Context("frozen", "", Site("net", "body"), 5, 9)
    assert context.covers(Site("net", "body"), 5)
    assert context.covers(Site("net", "body.0.weight"), 9)
    assert not context.covers(Site("net", "body2"), 7)
    assert not context.covers(Site("net"), 7)
    assert not context.covers(Site("other", "body"), 7)
    assert not context.covers(Site("net", "body"), 4)
    assert not context.covers(Site("net", "body"), 10)
    assert Context("gan", "").covers(Site("", "SGD"), 0)


def test_contexts_are_the_same_in_whatever_portions_a_run_comes():
    recording = trained([1] * 6, [0.1, 0.2, 0.3, 0.3, 0.3, 0.3])
    engine = Engine([alarm("warmup", hits=2)])
    for item in recording.items:
        engine.write([item])
        assert engine.verdict
    engine.close()
    assert engine.verdict == judge(recording.items, [alarm("warmup", hits=2)])


def test_a_context_is_looked_up_once_a_measured_step(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def counting(run: Run, name: str, declared: object) -> list[Context]:
        asked.append(name)
        return []

    monkeypatch.setattr("traindx.rules.engine.contexts_of", counting)
    recording = Recording(chain(50))
    for step in range(3):
        recording.items += [Scalar(step, "loss", 1.0, Site("net", str(i))) for i in range(50)]
        recording.measured(step)
    engine = Engine([alarm("warmup")])
    engine.write(recording.items)
    assert asked == ["warmup"] * 3


@pytest.mark.parametrize("each", catalog().values(), ids=lambda each: each.code)
def test_rules_are_silent_in_contexts_that_there_are(each: Rule):
    assert set(each.silent_in) <= set(names())


def test_every_context_is_documented():
    page = Path(__file__).parents[2].joinpath("docs", "configuration.md").read_text("utf-8")
    assert [name for name in names() if f"| `{name}` |" not in page] == []


# -- on real training ----------------------------------------------------------------------------


@pytest.fixture
def verdict(tmp_path: Path):
    def run(training: Callable[[], None]):
        torch.manual_seed(0)
        with traindx.watch(folder=tmp_path, config=os.devnull) as session:
            training()
        assert session.run.verdict is not None
        return session.run.verdict

    return run


def fit(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 12) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.randn(32, 16)), torch.randint(3, (32,))).backward()
        optimizer.step()


def deep_with_zero_head() -> None:
    layers = [layer for _ in range(6) for layer in (nn.Linear(16, 16), nn.ReLU())]
    net = nn.Sequential(*layers, nn.Linear(16, 3))
    for layer in net:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(net[-1].weight)  # pyright: ignore[reportArgumentType]
    fit(net, torch.optim.SGD(net.parameters(), lr=1e-5))


def test_a_head_that_starts_at_zero_is_no_vanishing_gradient(verdict):
    judged = verdict(deep_with_zero_head)
    assert [finding.code for finding in judged.findings] == []
    (silenced,) = [entry for entry in judged.silenced if entry.code == "G001"]
    assert silenced.reason == "zero-init: `12.weight` was exactly 0 at the start"


def adversarial() -> None:
    generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    discriminator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
    ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
    loss = F.binary_cross_entropy_with_logits
    for _ in range(12):
        fakes = generator(torch.randn(16, 4))
        optimizer_d.zero_grad()
        real = loss(discriminator(torch.randn(16, 2)), ones)
        (real + loss(discriminator(fakes.detach()), zeros)).backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        loss(discriminator(fakes), ones).backward()
        optimizer_g.step()


def test_a_gan_is_seen_to_be_one(verdict):
    (gan,) = [context for context in verdict(adversarial).contexts if context.name == "gan"]
    assert gan.reason == (
        "one loss trains `discriminator` alone, another `generator` through `discriminator`"
    )


def ordinary() -> None:
    net = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    fit(net, torch.optim.SGD(net.parameters(), lr=0.1))


def test_ordinary_training_has_no_context(verdict):
    assert verdict(ordinary).contexts == ()


def finetuning() -> None:
    body = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU())
    for _ in range(10):
        body(torch.randn(64, 16))
    body.requires_grad_(False).eval()
    net = nn.Sequential(body, nn.Linear(16, 3))
    schedule = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(schedule, 0.1, total_iters=5)
    for _ in range(12):
        fit(net, schedule, steps=1)
        warm.step()


def test_finetuning_with_a_warmup_is_seen_to_be_that(verdict):
    found = {(context.name, context.site.fqn) for context in verdict(finetuning).contexts}
    assert found == {
        ("frozen", "0"),
        ("frozen-bn", ""),
        ("pretrained", ""),
        ("warmup", ""),
    }
