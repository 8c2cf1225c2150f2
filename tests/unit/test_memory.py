"""The arithmetic of the caches against real starts, and against what is reported for the machine it is made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console.memory import UnknownShape, plan, read_shape
from console.memory.files import find

TINY: dict[str, Any] = {
    "num_hidden_layers": 8,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 2,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "num_nextn_predict_layers": 1,
    "max_position_embeddings": 131072,
}
# 64 layers, 48 of them gated delta net; heads and widths are those under which the reported blocks come out.
LARGE: dict[str, Any] = {
    "text_config": TINY
    | {
        "num_hidden_layers": 64,
        "layer_types": TINY["layer_types"][:4] * 16,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
    }
}
MTP = {"method": "mtp", "num_speculative_tokens": 2}
BASE: dict[str, Any] = {"tensor-parallel-size": 2, "max-model-len": 32768, "max-num-batched-tokens": 1024}


@pytest.mark.parametrize(
    ("args", "blocks", "concurrency", "tokens"),
    [
        # The three real starts whose logs and pages are recorded.
        ({"enable-prefix-caching": True}, 8192, 61.134328, 2_003_249),
        ({"enable-prefix-caching": False, "speculative-config": MTP}, 5461, 40.753731, 1_335_418),
        ({"enable-prefix-caching": True, "speculative-config": MTP}, 5461, 40.154412, 1_315_779),
    ],
)
def test_what_the_real_engine_said_of_its_cache(
    args: dict[str, Any], blocks: int, concurrency: float, tokens: int
) -> None:
    got = plan(read_shape(TINY), BASE | args, cpu=True, kv_bytes=1024**3)
    assert (got.block_tokens, got.blocks, got.kv_tokens) == (256, blocks, tokens)
    assert got.concurrency == pytest.approx(concurrency, abs=1e-6)
    assert got.unknown == ()


def test_what_is_reported_for_two_cards() -> None:
    shape = read_shape(LARGE)
    fp8 = {"tensor-parallel-size": 2, "kv-cache-dtype": "fp8", "kv-cache-memory-bytes": 2_500_000_000}
    plain = plan(shape, fp8 | {"max-model-len": 102_400, "enable-prefix-caching": True, "max-num-batched-tokens": 2048})
    assert plain.block_tokens == 1568
    assert plain.concurrency is not None
    assert plain.concurrency > 1
    assert (plain.effective_chunk, plain.effective_chunk_beside_one) == (1568, 1568)
    mtp = {"method": "mtp", "num_speculative_tokens": 3}
    recipe = plan(shape, fp8 | {"max-model-len": 122_880, "enable-prefix-caching": False, "speculative-config": mtp})
    assert recipe.block_tokens == 1600
    assert recipe.concurrency == pytest.approx(1.0)
    assert recipe.kv_tokens == 122_880
    half = plan(shape, {"tensor-parallel-size": 2, "enable-prefix-caching": True})
    assert half.block_tokens == 784


def test_a_context_that_vllm_finds_for_itself_is_not_judged() -> None:
    fp8 = {"tensor-parallel-size": 2, "kv-cache-dtype": "fp8", "kv-cache-memory-bytes": 2_500_000_000}
    for auto in ("auto", -1):
        got = plan(read_shape(LARGE), fp8 | {"enable-prefix-caching": True, "max-model-len": auto})
        assert (got.concurrency, got.kv_tokens) == (None, None)
        assert any("what fits" in reason for reason in got.unknown)


def test_drafts_that_are_looked_up_take_no_cache() -> None:
    args = {"tensor-parallel-size": 2, "kv-cache-dtype": "fp8", "enable-prefix-caching": True}
    drafts = {"num_speculative_tokens": 3}
    plain = plan(read_shape(LARGE), args)
    assert plan(read_shape(LARGE), args | {"speculative-config": {"method": "ngram", **drafts}}).kv_bytes_per_token == (
        plain.kv_bytes_per_token
    )
    mtp = plan(read_shape(LARGE), args | {"speculative-config": {"method": "mtp", **drafts}})
    assert (mtp.kv_bytes_per_token or 0) > (plain.kv_bytes_per_token or 0)


def test_a_starved_chunk_is_seen_before_the_start() -> None:
    args = {"tensor-parallel-size": 2, "kv-cache-dtype": "fp8", "enable-prefix-caching": True}
    starved = plan(read_shape(LARGE), args | {"max-num-batched-tokens": 1568})
    assert (starved.effective_chunk, starved.effective_chunk_beside_one) == (1568, 0)


def test_what_is_not_known_is_said() -> None:
    got = plan(read_shape(TINY), BASE)
    assert (got.blocks, got.concurrency, got.kv_tokens) == (None, None, None)
    assert len(got.unknown) == 2
    assert plan(read_shape(TINY), BASE | {"kv-cache-dtype": "nvfp4"}).unknown == ("KV cache type nvfp4",)
    assert plan(read_shape(TINY), BASE | {"pipeline-parallel-size": 2}).unknown == ("pipeline parallelism",)


def test_dense_models_have_one_group() -> None:
    dense = {"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512}
    got = plan(read_shape(dense), {"max-model-len": 4096, "kv-cache-memory-bytes": 1024**3})
    assert (got.block_tokens, got.kv_bytes_per_token) == (16, 2 * 512 * 2 * 4)
    assert got.kv_tokens == 1024**3 // (2 * 512 * 2 * 4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"layer_types": ["sliding_attention"] * 8}, "other kinds"),
        ({"kv_lora_rank": 512}, "MLA"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"linear_num_value_heads": "many"}, "linear_num_value_heads"),
        ({"layer_types": None}, "full_attention_interval"),
        ({"mamba_ssm_dtype": "float8"}, "float8"),
    ],
)
def test_a_shape_that_is_not_known_is_not_guessed(change: dict[str, Any], why: str) -> None:
    with pytest.raises(UnknownShape, match=why):
        read_shape(TINY | change)


def test_files_are_found_where_they_lie(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text('{"a": 1}')
    (snapshot / "model.safetensors").write_bytes(b"x" * 100)
    found = find("org/name", {"HF_HOME": str(tmp_path)})
    assert found is not None
    assert (found.config, found.weight_bytes) == ({"a": 1}, 100)
    assert find("org/other", {"HF_HOME": str(tmp_path)}) is None
    assert find(str(snapshot), {}) == found
    (snapshot / "config.json").write_text("{")
    torn = find(str(snapshot), {})
    assert torn is not None
    assert torn.config is None
