"""Without a GPU its tests are not collected: a skip in the report would say that they are there."""

from __future__ import annotations

import os

import torch

collect_ignore_glob = [] if torch.cuda.is_available() else ["test_*.py"]
# Before CUDA starts: matrix products then give the same bits in every run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
