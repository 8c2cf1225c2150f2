"""What hangs, what is only slow, and what rests."""

from __future__ import annotations

import pytest

from console.server.diagnose import diagnose
from console.server.status import Phase
from tests.unit.log_starts import API, BANNER, BLOCKED, COMPILED, LOADED, NCCL, READY, SERVED, cause


@pytest.mark.parametrize("silent_s", [0, 20, 59])
def test_nccl_takes_its_seconds(silent_s: float) -> None:
    assert cause([*BANNER, NCCL], alive=True, silent_s=silent_s) is None


@pytest.mark.parametrize(
    "last",
    [
        [NCCL],
        ["box:13:13 [0] NCCL INFO Channel 00/02 : 0 1"],
        [NCCL, "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1"],
        [NCCL, BLOCKED, BLOCKED],
        ["INFO 02-03 10:00:10 [pynccl.py:63] vLLM is using nccl==2.20.5"],
        ["INFO 02-03 10:00:10 [custom_all_reduce_utils.py:1] generating GPU P2P access cache in /c/gpu_p2p.json"],
    ],
)
def test_nccl_hang(last: list[str]) -> None:
    found = diagnose([*BANNER, *last], alive=True, silent_s=120)
    assert found is not None
    assert (found.cause, found.phase) == ("nccl-stuck", Phase.START)
    assert "NCCL_P2P_DISABLE" in found.fix
    assert "disable-custom-all-reduce" in found.fix


def test_silence_after_the_ranks_are_connected_is_not_nccl() -> None:
    done = "(Worker pid=13) INFO [parallel_state.py:1] rank 0 in world size 2 is assigned as DP rank 0, TP rank 0"
    assert cause([*BANNER, NCCL, done], alive=True, silent_s=120) is None
    assert cause([*BANNER, NCCL, *LOADED], alive=True, silent_s=120) is None


def test_broadcast_lines_while_it_compiles_are_slow_and_many_are_a_hang() -> None:
    assert cause([*BANNER, *COMPILED, *[BLOCKED] * 2], alive=True, silent_s=30) is None
    assert cause([*BANNER, *COMPILED, *[BLOCKED] * 6], alive=True, silent_s=30) is None
    assert cause([*BANNER, *COMPILED, *[BLOCKED] * 20], alive=True) == "engine-stalled"


def test_broadcast_lines_when_ready_are_a_stall() -> None:
    found = diagnose([*BANNER, *READY, SERVED, *[BLOCKED] * 5], alive=True)
    assert found is not None
    assert (found.cause, found.phase) == ("engine-stalled", Phase.READY)
    assert "broadcast block" in found.why


def test_broadcast_lines_before_the_last_token_are_history() -> None:
    assert cause([*BANNER, *READY, *[BLOCKED] * 5, SERVED], alive=True, silent_s=600) is None
    busy = (
        API
        + "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 71.8 tokens/s, Running: 1 reqs"
    )
    assert cause([*BANNER, *READY, *[BLOCKED] * 5, busy, BLOCKED], alive=True, silent_s=5) is None
    idle = busy.replace("71.8", "0.0")
    assert cause([*BANNER, *READY, BLOCKED, idle, BLOCKED, idle, BLOCKED], alive=True) == "engine-stalled"


def test_silence_of_a_ready_server_is_peace() -> None:
    assert cause([*BANNER, *READY, SERVED], alive=True, silent_s=86_400) is None
