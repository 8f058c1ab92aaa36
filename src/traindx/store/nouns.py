"""How each noun of a run is made: the JSON of facts and of the verdict, field by field."""

from __future__ import annotations

from typing import Any

from traindx.facts import (
    Facts,
    LossFacts,
    ModelFacts,
    ModuleFacts,
    OptimizerFacts,
    ParamFacts,
    PathFacts,
    TensorFacts,
)
from traindx.findings import (
    Context,
    Evidence,
    Finding,
    NotEvaluated,
    Severity,
    Silenced,
    Verdict,
)
from traindx.records import Point, Site
from traindx.store.codec import (
    BOOLEAN,
    INTEGER,
    JSON,
    REAL,
    TEXT,
    Codec,
    choice,
    many,
    mapping,
    noun,
    optional,
)

OPTIONS = mapping(JSON)
SHAPE = many(INTEGER)
NAMES = many(TEXT)
NUMBERS = mapping(REAL)

MODULE = noun(
    ModuleFacts,
    fqn=TEXT,
    kind=TEXT,
    order=optional(INTEGER),
    calls=INTEGER,
    options=OPTIONS,
)
PATH = noun(PathFacts, sigmoids=INTEGER, norms=INTEGER, log10_bound=optional(REAL))
PARAM = noun(
    ParamFacts,
    fqn=TEXT,
    shape=SHAPE,
    dtype=TEXT,
    trainable=BOOLEAN,
    optimizers=NAMES,
    path=optional(PATH),
)
MODEL = noun(
    ModelFacts,
    name=TEXT,
    kind=TEXT,
    modules=many(MODULE),
    params=many(PARAM),
    compiled=BOOLEAN,
)
OPTIMIZER = noun(
    OptimizerFacts,
    name=TEXT,
    kind=TEXT,
    groups=many(OPTIONS),
    num_params=INTEGER,
    stale=many(SHAPE),
    unheld=NAMES,
)
TENSOR = noun(
    TensorFacts,
    shape=SHAPE,
    dtype=TEXT,
    operation=TEXT,
    min=REAL,
    max=REAL,
    integers=BOOLEAN,
    rows_sum_to_one=BOOLEAN,
)
LOSS = noun(
    LossFacts,
    models=TEXT,
    operation=TEXT,
    loss=TEXT,
    prediction=optional(TENSOR),
    target=optional(TENSOR),
)
FACTS: dict[str, Codec[Any]] = {"model": MODEL, "optimizer": OPTIMIZER, "loss": LOSS}

SITE = noun(Site, model=TEXT, fqn=TEXT)
EVIDENCE = noun(
    Evidence,
    site=SITE,
    step=INTEGER,
    message=TEXT,
    numbers=NUMBERS,
    point=optional(choice(Point)),
    cause=TEXT,
    fix=TEXT,
    excluded=NAMES,
    series=NAMES,
    severity=optional(choice(Severity)),
    layers=NAMES,
    profiles=NAMES,
)
FINDING = noun(
    Finding,
    id=INTEGER,
    code=TEXT,
    name=TEXT,
    severity=choice(Severity),
    active=BOOLEAN,
    evidence=EVIDENCE,
    first_step=INTEGER,
    last_step=INTEGER,
    count=INTEGER,
    thresholds=NUMBERS,
    caused_by=SHAPE,
    remedies=NAMES,
)
NOT_EVALUATED = noun(NotEvaluated, code=TEXT, reason=TEXT)
SILENCED = noun(Silenced, code=TEXT, site=SITE, reason=TEXT)
CONTEXT = noun(
    Context,
    name=TEXT,
    reason=TEXT,
    site=SITE,
    first_step=INTEGER,
    last_step=optional(INTEGER),
)
VERDICT = noun(
    Verdict,
    findings=many(FINDING),
    evaluated=NAMES,
    not_evaluated=many(NOT_EVALUATED),
    silenced=many(SILENCED),
    contexts=many(CONTEXT),
)


def facts_kind(facts: Facts) -> str:
    """The key of `FACTS` under which such facts are stored."""
    match facts:
        case ModelFacts():
            return "model"
        case OptimizerFacts():
            return "optimizer"
        case LossFacts():
            return "loss"
