"""The engine on runs whose names and numbers nobody would choose."""

from __future__ import annotations

from tests.rules.test_engine import alarm, values, verdict_of
from traindx.facts import Json, ModelFacts, ModuleFacts
from traindx.records import Point, Record, Site, TensorStats


def test_half_a_surrogate_pair_in_a_name_is_no_failure():
    (finding,) = verdict_of(values(1, fqn="\ud800"), alarm()).findings
    (other,) = verdict_of(values(1, fqn="\ud801"), alarm()).findings
    assert finding.fingerprint != other.fingerprint


def test_a_context_that_cannot_be_inferred_leaves_the_verdict_and_its_findings():
    recording = values(1)
    options: dict[str, Json] = {"num_embeddings": 10**400, "embedding_dim": 10**400}
    facts = ModelFacts("net", "Net", (ModuleFacts("0", "Embedding", 0, 1, options),), ())
    recording.described(0, facts)
    stats = TensorStats(4, 0.0, 1.0, 0.0, 1.0)
    recording.items.append(Record(0, Site("net", "0"), Point.OUTPUT, stats))
    assert len(verdict_of(recording, alarm()).findings) == 1
