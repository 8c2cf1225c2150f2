"""The known-bad combinations. A rule yields what it finds; each says why and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from console.endpoint import is_loopback
from console.lint.model import Case, Finding, Rule, Weight
from console.lint.sizes import SIZE_RULES
from console.presets.catalog import ANY_MODEL
from console.presets.model import KEY_VARIABLE
from console.presets.secrecy import arg_secrets

_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose"})
_CRASHES_FROM = 5
_COLD_START_S = 443


def variable_unset(case: Case) -> Iterator[Finding]:
    """Variables without which a start is refused."""
    for missing in case.preset.unset:
        yield Finding(
            "variable-unset",
            Weight.BAD,
            missing.name,
            f"the variable {missing.variable} is not set",
            f"{missing.error.why}: a start is refused",
            missing.error.fix,
        )


def no_model(case: Case) -> Iterator[Finding]:
    """A model of this machine that cannot be loaded."""
    lacking = case.ground.no_model
    if lacking is None:
        return
    needs_none = ANY_MODEL in case.preset.env
    yield Finding(
        "model-missing",
        Weight.INFO if needs_none else Weight.BAD,
        "model",
        lacking,
        "a vLLM would end at once, the stand-in needs no model" if needs_none else "the start ends at once",
        "put the model there, or name another path, or a model of the Hugging Face hub as OWNER/NAME",
    )


def open_host(case: Case) -> Iterator[Finding]:
    """Listening beyond this machine without a key."""
    host = case.preset.server.host
    if is_loopback(host) or case.preset.api_key:
        return
    yield Finding(
        "open-without-key",
        Weight.BAD,
        "server.host",
        f"the server listens on {host} without a key",
        "everybody who reaches this machine can use the model and read its metrics",
        f"host 127.0.0.1 and an SSH tunnel, or a key: env: {{{KEY_VARIABLE}: ${{{KEY_VARIABLE}}}}}",
    )


def key_in_args(case: Case) -> Iterator[Finding]:
    """A key on the command line, which every user of the machine can read."""
    if case.flag("api-key") is not None:
        yield Finding(
            "key-in-args",
            Weight.BAD,
            "api-key",
            "the key stands in args",
            "`ps` shows a command line to every user, and older vLLM prints it into its log",
            f"env: {{{KEY_VARIABLE}: ${{{KEY_VARIABLE}}}}}",
        )
    for flag, value in case.preset.args.items():
        if flag != "api-key" and arg_secrets({flag: value}):
            yield Finding(
                "key-in-args",
                Weight.BAD,
                flag,
                "a secret stands in args",
                "`ps` shows a command line to every user of this machine; the console covers it only where it shows it",
                "put it under `env:`, where vLLM or its library can take it from there",
            )


def container(case: Case) -> Iterator[Finding]:
    """A container's command, which the console cannot run."""
    for word in case.preset.command:
        if word.rpartition("/")[2] in _CONTAINERS:
            yield Finding(
                "container-command",
                Weight.BAD,
                "command",
                f"{word} cannot be the command",
                "the processes in a container are not ours to see, to prove ready, or to stop whole",
                "install vLLM beside the console: command: [vllm, serve]",
            )


def mtp_prefix_async(case: Case) -> Iterator[Finding]:
    """Three features that are each fine and crash together."""
    if not (case.mtp and case.prefix) or case.flag("async-scheduling") is False:
        return
    if case.on_cpu:
        yield Finding(
            "mtp-prefix-cpu",
            Weight.BAD,
            "speculative-config",
            "MTP with prefix caching dies at the first request on the CPU build",
            "the copy kernel of align mode is written in Triton, which has no CPU there",
            "enable-prefix-caching: false",
        )
        return
    yield Finding(
        "mtp-prefix-async",
        Weight.LOOK,
        "async-scheduling",
        "MTP, prefix caching and asynchronous scheduling are on together",
        "reported to end in Xid 31 and cudaErrorIllegalAddress on this kind of model",
        "async-scheduling: false",
    )


def many_drafts(case: Case) -> Iterator[Finding]:
    """More draft tokens than this family bears."""
    if case.mtp < _CRASHES_FROM:
        return
    yield Finding(
        "mtp-n-too-large",
        Weight.BAD if case.hybrid else Weight.LOOK,
        "speculative-config",
        f"{case.mtp} draft tokens a step",
        f"{_CRASHES_FROM} and more are reported to crash this family, and late positions are rarely accepted",
        "num_speculative_tokens: 2 or 3; `qwen-console ab mtp --arms 1,2,3` measures them",
    )


def mtp_long_context(case: Case) -> Iterator[Finding]:
    """Acceptance may be lost for good at one position."""
    length = case.number("max-model-len")
    if case.mtp and length is not None and length > 32_768:
        yield Finding(
            "mtp-beyond-32k",
            Weight.INFO,
            "speculative-config",
            f"MTP with a context of {length:,} tokens",
            "some versions lose every draft, for all requests until a restart, once one crosses position 32,768",
            "watch the acceptance rate after a long prompt: the console tells when it collapses",
        )


def mtp_costs(case: Case) -> Iterator[Finding]:
    """What speculation takes beside what it gives."""
    if case.mtp and case.prefix and not case.on_cpu:
        yield Finding(
            "mtp-and-prefix",
            Weight.INFO,
            "speculative-config",
            "MTP lowers the hits of the prefix cache",
            "drafts take blocks of it, and the first repeat of a prefix does not hit; in some versions structured "
            "output was valid less often, too",
            "`qwen-console ab mtp` measures speed, hits and function beside each other",
        )


def short_patience(case: Case) -> Iterator[Finding]:
    """A limit that a cold start does not keep."""
    limit = case.preset.server.ready_timeout
    if case.hybrid and not case.on_cpu and limit < _COLD_START_S:
        yield Finding(
            "ready-timeout-short",
            Weight.LOOK,
            "server.ready-timeout",
            f"a start is stopped after {limit:.0f} s",
            f"{_COLD_START_S} s are reported for a cold start of this family (132 s with its compile cache)",
            "server: {ready-timeout: 900}",
        )


def reduce_on_pcie(case: Case) -> Iterator[Finding]:
    """What hangs on GeForce pairs without P2P."""
    if case.ranks < 2 or case.on_cpu:
        return
    if case.flag("disable-custom-all-reduce") is not True:
        yield Finding(
            "custom-all-reduce",
            Weight.LOOK,
            "disable-custom-all-reduce",
            "the custom all-reduce is not switched off",
            "at two ranks vLLM takes it without a word, and it is reported to hang on cards that talk over PCIe only",
            "disable-custom-all-reduce: true",
        )
    if case.preset.env.get("NCCL_P2P_DISABLE") != "1":
        yield Finding(
            "nccl-p2p",
            Weight.LOOK,
            "env.NCCL_P2P_DISABLE",
            "NCCL may try P2P between the cards",
            "GeForce cards have none; NCCL is reported to hang at the start, with silence as its last line",
            'env: {NCCL_P2P_DISABLE: "1"}',
        )


def order_of_cards(case: Case) -> Iterator[Finding]:
    """Numbers of cards that may mean others than `nvidia-smi` shows."""
    env: Mapping[str, str] = case.preset.env
    if "CUDA_VISIBLE_DEVICES" in env and env.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        yield Finding(
            "card-order",
            Weight.LOOK,
            "env.CUDA_DEVICE_ORDER",
            "CUDA_VISIBLE_DEVICES is set without CUDA_DEVICE_ORDER",
            "CUDA numbers cards by speed, nvidia-smi and this console by bus: the numbers may differ",
            "env: {CUDA_DEVICE_ORDER: PCI_BUS_ID}",
        )


def eager(case: Case) -> Iterator[Finding]:
    """Everything at the speed of Python."""
    if case.flag("enforce-eager") is True:
        yield Finding(
            "eager",
            Weight.LOOK,
            "enforce-eager",
            "CUDA graphs and torch.compile are off",
            "each decode step then costs hundreds of kernel launches",
            "leave enforce-eager out; `qwen-console ab graphs` measures it where the preset's lab has it",
        )


def no_stats(case: Case) -> Iterator[Finding]:
    """A server without figures."""
    if case.flag("disable-log-stats") is True:
        yield Finding(
            "no-metrics",
            Weight.LOOK,
            "disable-log-stats",
            "the server will have no metrics",
            "disable-log-stats empties /metrics: no live figures, no history, no proof in an A/B run",
            "leave it out",
        )
    if case.prefix and case.flag("enable-prompt-tokens-details") is not True:
        yield Finding(
            "no-cached-tokens",
            Weight.INFO,
            "enable-prompt-tokens-details",
            "answers will not tell how many prompt tokens were cached",
            "clients (and the A/B runs of this console) see `prompt_tokens_details: null`",
            "enable-prompt-tokens-details: true",
        )


RULES: tuple[Rule, ...] = (
    variable_unset,
    no_model,
    open_host,
    key_in_args,
    container,
    many_drafts,
    mtp_prefix_async,
    *SIZE_RULES,
    reduce_on_pcie,
    order_of_cards,
    eager,
    no_stats,
    short_patience,
    mtp_long_context,
    mtp_costs,
)
