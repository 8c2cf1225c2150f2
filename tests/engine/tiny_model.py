"""Write a tiny hybrid checkpoint (gated delta net and attention 3:1, an MTP head) that the real vLLM loads on a CPU.

Nothing is trained. Every block's last projection is zero, so the hidden state that reaches the head is the embedding
of the newest token: all kernels run, none changes the outcome. Row `next(t)` of the head is the embedding of `t`, so
greedy decoding follows one long cycle through the vocabulary, laid along the bigrams of a text corpus: the answer
reads like code and does not repeat for about as many tokens as the vocabulary has.

The MTP head gets the same embedding through a matrix with noise mixed in. The noise is searched until a draft is
right for the wanted share of tokens: that share is the acceptance rate an engine should measure.

usage: python -m tests.engine.tiny_model OUT_DIR [--acceptance 0.75] [--seed 0]
Needs numpy, safetensors and tokenizers, which the engine's own environment has.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Shape:
    """Sizes of the model; small, yet with every kind of layer of the production model."""

    layers: int = 8
    hidden: int = 128
    vocabulary: int = 2048
    context: int = 131072
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    linear_k_heads: int = 2
    linear_v_heads: int = 4
    linear_dim: int = 64
    experts: int = 4
    expert_size: int = 64

    @property
    def kinds(self) -> list[str]:
        """Every fourth layer attends, the others are linear."""
        return ["linear_attention" if (i + 1) % 4 else "full_attention" for i in range(self.layers)]


def corpus() -> list[str]:
    """Python's own standard library: code, and on every machine that runs this."""
    return [str(path) for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:120]]


def make_tokenizer(files: list[str], shape: Shape) -> Any:
    """A byte-level BPE trained on `files`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=shape.vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train(files, trainer)
    return tokenizer


def cycle(tokenizer: Any, files: list[str]) -> Array:
    """`next[t]`: one cycle over all ordinary tokens that takes a frequent successor wherever one is still free."""
    follows: defaultdict[int, Counter[int]] = defaultdict(Counter)
    frequency: Counter[int] = Counter()
    for file in files:
        ids = tokenizer.encode(Path(file).read_text(errors="ignore")).ids
        frequency.update(ids)
        for left, right in pairwise(ids):
            follows[left][right] += 1
    size = tokenizer.get_vocab_size()
    waiting = sorted(range(len(SPECIAL), size), key=lambda token: (-frequency[token], token))
    first = here = waiting[0]
    free = set(waiting[1:])
    successor = np.full(size, first)
    rest = iter(waiting)
    while free:
        likely = [token for token, _ in follows[here].most_common() if token in free]
        step = likely[0] if likely else next(token for token in rest if token in free)
        free.remove(step)
        successor[here], here = step, step
    successor[here] = first
    return successor


def normalised(rows: Array) -> Array:
    """Rows of root mean square 1, as the model's norms make them."""
    result: Array = rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-6)
    return result


class Weights:
    """Tensors by name; everything is drawn from one seeded generator."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape = shape
        self.random = np.random.default_rng(seed)
        self.tensors: dict[str, Array] = {}

    def noise(self, *size: int) -> Array:
        return (self.random.standard_normal(size) * 0.05).astype(np.float16)

    def put(self, prefix: str, **named: Array) -> None:
        for name, tensor in named.items():
            self.tensors[f"{prefix}{name.replace('__', '.')}"] = tensor.astype(np.float16)

    def attention(self, at: str) -> None:
        s = self.shape
        self.put(
            at + "self_attn.",
            # The query projection carries the output gate beside it.
            q_proj__weight=self.noise(2 * s.heads * s.head_dim, s.hidden),
            k_proj__weight=self.noise(s.kv_heads * s.head_dim, s.hidden),
            v_proj__weight=self.noise(s.kv_heads * s.head_dim, s.hidden),
            o_proj__weight=np.zeros((s.hidden, s.heads * s.head_dim)),
            q_norm__weight=np.zeros(s.head_dim),
            k_norm__weight=np.zeros(s.head_dim),
        )

    def delta_net(self, at: str) -> None:
        s = self.shape
        keys, values = s.linear_k_heads * s.linear_dim, s.linear_v_heads * s.linear_dim
        self.put(
            at + "linear_attn.",
            in_proj_qkvz__weight=self.noise(2 * (keys + values), s.hidden),
            in_proj_ba__weight=self.noise(2 * s.linear_v_heads, s.hidden),
            conv1d__weight=self.noise(2 * keys + values, 1, 4),
            dt_bias=self.noise(s.linear_v_heads),
            A_log=self.noise(s.linear_v_heads),
            norm__weight=np.ones(s.linear_dim),
            out_proj__weight=np.zeros((s.hidden, values)),
        )

    def experts(self, at: str) -> None:
        s = self.shape
        self.put(
            at + "mlp.",
            gate__weight=self.noise(s.experts, s.hidden),
            shared_expert_gate__weight=self.noise(1, s.hidden),
        )
        for expert in [*(f"experts.{i}." for i in range(s.experts)), "shared_expert."]:
            self.put(
                at + "mlp." + expert,
                gate_proj__weight=self.noise(s.expert_size, s.hidden),
                up_proj__weight=self.noise(s.expert_size, s.hidden),
                down_proj__weight=np.zeros((s.hidden, s.expert_size)),
            )

    def block(self, at: str, kind: str) -> None:
        zero = np.zeros(self.shape.hidden)
        self.put(at, input_layernorm__weight=zero, post_attention_layernorm__weight=zero)
        self.experts(at)
        if kind == "full_attention":
            self.attention(at)
        else:
            self.delta_net(at)


def draft_noise(embedding: Array, head: Array, successor: Array, blur: Array, wanted: float) -> float:
    """How much of `blur` makes a draft right for the `wanted` share of tokens (bisection; more noise, fewer right)."""
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        if share_right(embedding, head, successor, blur, middle) > wanted:
            low = middle
        else:
            high = middle
    return low


def share_right(embedding: Array, head: Array, successor: Array, blur: Array, noise: float) -> float:
    """The share of ordinary tokens whose draft is the token that greedy decoding takes."""
    ordinary = slice(len(SPECIAL), None)
    seen = normalised(embedding[ordinary] @ (np.eye(len(blur)) + noise * blur).T)
    return float(((seen @ head.T).argmax(axis=1) == successor[ordinary]).mean())


def config(shape: Shape, vocabulary: int) -> dict[str, Any]:
    """The model's `config.json`."""
    return {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "vocab_size": vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": 2 * shape.hidden,
        "num_hidden_layers": shape.layers,
        "layer_types": shape.kinds,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": shape.linear_dim,
        "linear_value_head_dim": shape.linear_dim,
        "linear_num_key_heads": shape.linear_k_heads,
        "linear_num_value_heads": shape.linear_v_heads,
        "max_position_embeddings": shape.context,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.25,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "num_experts": shape.experts,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": shape.expert_size,
        "shared_expert_intermediate_size": shape.expert_size,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "eos_token_id": SPECIAL.index("<|im_end|>"),
        "num_nextn_predict_layers": 1,
        "use_cache": True,
    }


def write(out: Path, acceptance: float, seed: int, shape: Shape) -> float:
    """Write the checkpoint; the share of tokens for which a draft is right."""
    from safetensors.numpy import save_file

    out.mkdir(parents=True, exist_ok=True)
    files = corpus()
    tokenizer = make_tokenizer(files, shape)
    successor = cycle(tokenizer, files)
    size = tokenizer.get_vocab_size()
    weights = Weights(shape, seed)
    embedding = normalised(weights.random.standard_normal((size, shape.hidden)))
    head = np.zeros_like(embedding)
    head[successor[len(SPECIAL) :]] = 0.2 * embedding[len(SPECIAL) :]
    blur = weights.random.standard_normal((shape.hidden, shape.hidden)) / np.sqrt(shape.hidden)
    noise = draft_noise(embedding, head, successor, blur, acceptance)

    zero = np.zeros(shape.hidden)
    weights.put("model.", embed_tokens__weight=embedding, norm__weight=zero)
    weights.put("", lm_head__weight=head)
    for number, kind in enumerate(shape.kinds):
        weights.block(f"model.layers.{number}.", kind)
    weights.block("mtp.layers.0.", "full_attention")
    projection = np.concatenate([np.eye(shape.hidden) + noise * blur, np.zeros((shape.hidden, shape.hidden))], axis=1)
    weights.put(
        "mtp.",
        norm__weight=zero,
        pre_fc_norm_embedding__weight=zero,
        pre_fc_norm_hidden__weight=zero,
        fc__weight=projection,
    )
    save_file(weights.tensors, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(out / "tokenizer.json"))
    end = SPECIAL.index("<|im_end|>")
    documents = {
        "config.json": config(shape, size),
        "generation_config.json": {"eos_token_id": end},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": SPECIAL[end],
            "pad_token": SPECIAL[0],
            "model_max_length": shape.context,
            "chat_template": TEMPLATE,
        },
    }
    for name, content in documents.items():
        (out / name).write_text(json.dumps(content, indent=1))
    return share_right(embedding, head, successor, blur, noise)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--acceptance", type=float, default=0.75)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    right = write(args.out, args.acceptance, args.seed, Shape())
    print(f"{args.out}: drafts are right for {right:.3f} of the tokens")


if __name__ == "__main__":
    main()
