"""The model on loopback, behind the OpenAI-compatible server that llama.cpp brings: one thread, one conversation at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.weights import NotToBeHad

MODEL = "smollm2"
"""What it is called in requests and records."""

CONTEXT_TOKENS = 4096


@contextmanager
def served(weights: Path) -> Iterator[str]:
    """The base URL of a server for this file; it ends with the context. Raises ``NotToBeHad``."""
    try:
        import xllamacpp
    except ImportError as error:
        raise NotToBeHad(f"{error}; make test-real installs it") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {MODEL}
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # any that is free
    params.ui = params.warmup = False
    params.verbosity = 0
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise NotToBeHad(f"{weights.name} cannot be served: {error}") from None
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server  # which stops it
