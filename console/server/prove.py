"""One prompt of nearly the whole context: some settings start, and die there. What it took is kept for the preset."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from console.endpoint import TOKENIZE, Endpoint, EndpointError
from console.errors import ConsoleError
from console.gpu.sample import GpuReport
from console.presets import Preset
from console.server.baseline import keep_baseline, requests_ended
from console.server.cards import OpenCards
from console.server.fingerprint import fingerprint
from console.server.life import Server
from console.server.proof import CardPeak, Proof, write_proof
from console.server.run_lock import refuse_probe
from console.server.state import now_utc
from console.server.status import ServerStatus, State

ROOM_TOKENS = 16
"""Left free below the limit: the answer's one token, and what a template may add."""
_LEAST_TOKENS = 64
_LIMIT_S = 3600.0
_END_S = 30.0
_LOOK_EVERY_S = 0.25
_SAY_EVERY_S = 15.0
_TEXT = (
    "The agent read the file again, compared both versions line by line, and wrote down what had changed since the "
    "last run: two functions moved, one constant renamed, a test that had never been run. It then opened the next one. "
)


class ProofFailed(ConsoleError):
    """The long prompt was not answered."""

    def __init__(self, proof: Proof, status: ServerStatus) -> None:
        found = status.diagnosis
        why = found.why if found else proof.why or ""
        fix = found.fix if found else "lower --max-num-batched-tokens, --max-model-len or --gpu-memory-utilization"
        super().__init__(
            f"it is ready, but a prompt of {proof.prompt_tokens:,} tokens was not answered: "
            f"{found.what if found else proof.why}",
            why,
            fix,
        )
        self.cause = found.cause if found else "unknown"
        self.proof = proof


def prove(server: Server, open_cards: OpenCards, say: Callable[[str], None] = lambda _text: None) -> Proof:
    """Send the prompt, watch the cards meanwhile, keep what came of it.

    Args:
        server: the server, which has to be ready.
        open_cards: where to look at the cards.
        say: hears what is being done.

    Raises:
        ProofFailed: it was not answered; this is kept as well.
        BusyError: an A/B run goes on, which it would spoil.
        ConsoleError: it could not be tried.
    """
    refuse_probe(server.paths)
    endpoint, preset = server.endpoint(), server.preset()
    status = server.status()
    if endpoint is None or preset is None or status.state is not State.READY:
        raise ConsoleError("there is no ready server to prove", f"it is {status.state.value}", "start one first: `up`")
    length = _max_model_len(endpoint, preset)
    prompt = _prompt(endpoint, preset, length - ROOM_TOKENS)
    say(f"proving: one prompt of {len(prompt):,} tokens (the context is {length:,}); minutes are normal")
    before, begun = requests_ended(endpoint), time.monotonic()
    with _Peaks(open_cards) as peaks, _Patience(say, begun):
        problem = _ask(endpoint, preset, prompt)
    proof = Proof(
        fingerprint=fingerprint(preset),
        at=now_utc(),
        version=status.version,
        prompt_tokens=len(prompt),
        max_model_len=length,
        seconds=round(time.monotonic() - begun, 2),
        ok=problem is None,
        why=problem,
        cards=peaks.cards,
    )
    write_proof(server.paths, preset.name, proof)
    if problem is not None:
        raise ProofFailed(proof, _settled(server, problem))
    # So long a request would stand in every lifetime figure.
    keep_baseline(server.paths, endpoint, before + 1)
    return proof


def _settled(server: Server, problem: str) -> ServerStatus:
    """The status once a dying server has died: then its log holds the whole story. A refusal kills nobody."""
    end = time.monotonic() + _END_S
    while True:
        status = server.status()
        over = status.state in (State.FAILED, State.STOPPED) or problem.startswith("HTTP 4")
        if over or time.monotonic() > end:
            return status
        time.sleep(_LOOK_EVERY_S)


def _max_model_len(endpoint: Endpoint, preset: Preset) -> int:
    answer = endpoint.get_json("/v1/models", deadline=10.0)
    items = answer.get("data") if isinstance(answer, dict) else None
    lengths = [item.get("max_model_len") for item in items or () if isinstance(item, dict)]
    length = next((length for length in lengths if isinstance(length, int)), preset.max_model_len)
    if length is None or length < ROOM_TOKENS + _LEAST_TOKENS:
        raise ConsoleError("the context length is not known", "the server does not list it", "set max-model-len")
    return length


def _prompt(endpoint: Endpoint, preset: Preset, count: int) -> list[int]:
    """Exactly so many token ids, that no cache can hold: they begin with a number nobody has sent before."""
    nonce = _tokens(endpoint, preset, f"{secrets.token_hex(16)} ")
    text = _tokens(endpoint, preset, _TEXT)
    return (nonce + text * (count // len(text) + 1))[:count]


def _tokens(endpoint: Endpoint, preset: Preset, text: str) -> list[int]:
    body = {"model": preset.served, "prompt": text, "add_special_tokens": False}
    status, answer = endpoint.post_json(TOKENIZE, body)
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    if status != 200 or not isinstance(tokens, list) or not tokens:
        raise ConsoleError(
            "the prompt cannot be made", f"/tokenize answered with HTTP {status}", "see the server's log"
        )
    return [int(token) for token in tokens]


def _ask(endpoint: Endpoint, preset: Preset, prompt: list[int]) -> str | None:
    """What went wrong, `None` when it was answered."""
    body: dict[str, Any] = {"model": preset.served, "prompt": prompt, "max_tokens": 1, "temperature": 0}
    try:
        status, answer = endpoint.post_json("/v1/completions", body, deadline=_LIMIT_S)
    except EndpointError as error:
        return error.why
    if status == 200 and isinstance(answer, dict) and answer.get("choices"):
        return None
    said = answer.get("error", answer) if isinstance(answer, dict) else answer
    text = said.get("message") if isinstance(said, dict) else said
    return f"HTTP {status}: {str(text)[:300]}"


class _Patience:
    """Says every now and then that it goes on."""

    def __init__(self, say: Callable[[str], None], begun: float) -> None:
        self._say = say
        self._begun = begun
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="prove-patience")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_SAY_EVERY_S):
            self._say(f"proving: {time.monotonic() - self._begun:.0f} s")


class _Peaks:
    """The cards while the prompt is read: the most that was used, the least that was free."""

    def __init__(self, open_cards: OpenCards) -> None:
        self._open_cards = open_cards
        self._over = threading.Event()
        self._used: dict[int, int] = {}
        self._free: dict[int, int] = {}
        self._total: dict[int, int | None] = {}
        self._thread = threading.Thread(target=self._run, daemon=True, name="prove-cards")

    def __enter__(self) -> _Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=5.0)

    @property
    def cards(self) -> tuple[CardPeak, ...]:
        """What was seen, card by card; empty without cards."""
        return tuple(
            CardPeak(index, used, self._total.get(index), self._free.get(index))
            for index, used in sorted(self._used.items())
        )

    def _run(self) -> None:
        source = self._open_cards()
        try:
            while True:
                self._see(source.read())
                if self._over.wait(_LOOK_EVERY_S):
                    return
        finally:
            source.close()

    def _see(self, report: GpuReport) -> None:
        for card in report.cards:
            if card.problem or card.vram_used_bytes is None:
                continue
            self._used[card.index] = max(self._used.get(card.index, 0), card.vram_used_bytes)
            self._total[card.index] = card.vram_total_bytes
            if card.margin_bytes is not None:
                self._free[card.index] = min(self._free.get(card.index, card.margin_bytes), card.margin_bytes)
