"""A model's shape, read from its `config.json`: as much of it as decides the size of its caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ATTENTION, _LINEAR = "full_attention", "linear_attention"


class UnknownShape(Exception):
    """A model whose caches this arithmetic does not know; the message says why."""


@dataclass(frozen=True, slots=True)
class GatedDeltaNet:
    """The recurrent layers of a hybrid model."""

    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int
    """Kernel of the convolution."""
    state_bytes: int
    """Bytes of one number of the recurrent state."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the caches depend on."""

    attention_layers: int
    kv_heads: int
    head_dim: int
    linear: GatedDeltaNet | None = None
    draft_layers: int = 1
    """Attention layers of the MTP head, if the model has one."""
    max_len: int | None = None

    @property
    def hybrid(self) -> bool:
        """Whether recurrent layers stand beside attention."""
        return self.linear is not None


def read_shape(config: Mapping[str, Any]) -> ModelShape:
    """The shape of a `config.json`.

    Raises:
        UnknownShape: another kind of attention, or a field is missing.
    """
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    if text.get("kv_lora_rank"):
        raise UnknownShape("it has latent attention (MLA)")
    kinds = text.get("layer_types")
    layers = _number(text, "num_hidden_layers")
    if kinds is None:
        kinds = _by_interval(text, layers)
    if len(kinds) != layers or set(kinds) - {_ATTENTION, _LINEAR}:
        raise UnknownShape(f"it has layers of other kinds: {', '.join(sorted(set(map(str, kinds))))}")
    heads = _number(text, "num_attention_heads")
    head_dim = text.get("head_dim") or _number(text, "hidden_size") // heads
    return ModelShape(
        attention_layers=kinds.count(_ATTENTION),
        kv_heads=int(text.get("num_key_value_heads") or heads),
        head_dim=int(head_dim),
        linear=_delta_net(text, kinds.count(_LINEAR)) if _LINEAR in kinds else None,
        draft_layers=int(text.get("mtp_num_hidden_layers") or text.get("num_nextn_predict_layers") or 1),
        max_len=text.get("max_position_embeddings"),
    )


def _by_interval(text: Mapping[str, Any], layers: int) -> list[str]:
    if any(key.startswith("linear_") for key in text):
        every = _number(text, "full_attention_interval")
        return [_ATTENTION if (i + 1) % every == 0 else _LINEAR for i in range(layers)]
    if text.get("sliding_window") and text.get("use_sliding_window") is not False:
        raise UnknownShape("it has sliding windows")
    return [_ATTENTION] * layers


def _delta_net(text: Mapping[str, Any], layers: int) -> GatedDeltaNet:
    state = str(text.get("mamba_ssm_dtype") or "float32")
    if state not in ("float32", "bfloat16", "float16"):
        raise UnknownShape(f"its recurrent state is of type {state}")
    return GatedDeltaNet(
        layers=layers,
        key_heads=_number(text, "linear_num_key_heads"),
        value_heads=_number(text, "linear_num_value_heads"),
        key_dim=_number(text, "linear_key_head_dim"),
        value_dim=_number(text, "linear_value_head_dim"),
        conv=_number(text, "linear_conv_kernel_dim"),
        state_bytes=4 if state == "float32" else 2,
    )


def _number(text: Mapping[str, Any], key: str) -> int:
    value = text.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise UnknownShape(f"its config has no {key}")
    return value
