"""`python -m tests.norm.oracles [WHEEL]`: every vector that can be had here, counts and errors.

WHEEL is an onnx wheel of at most 1.22.0, which is read, not installed; `make oracles` fetches it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.norm.oracles import onnx_vectors, torch_samples
from tests.norm.oracles.answers import table

found = list(torch_samples.answers())
for wheel in sys.argv[1:]:
    found += onnx_vectors.answers(Path(wheel))
print("\n".join(table(found)))
failed = [answer for answer in found if not answer.excess <= 1]
for answer in failed:
    print(f"FAILED {answer.source}: {answer.name} is off by {answer.error:.3g}")
print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
sys.exit(bool(failed))
