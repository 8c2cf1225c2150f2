"""Rules about what was asked for and what the machine has: flags, values, the port, compilers, disks, cards."""

from __future__ import annotations

import re

from console.server.diagnosis.rule import Fault, Rule, Words, patterns
from console.server.status import Phase

_VALUE_ERROR = re.compile(r"^\s*(?:Value error|Assertion failed|Input should be),? ?(?P<said>.*?)(?:\s*\[type=.*)?$")
_PYDANTIC_HEAD = re.compile(r"\d+ validation errors? for (?P<model>[\w\[\],.-]+)")


def _port_in_use(fault: Fault) -> Words:
    found = re.search(r"\('?[\w.:]*'?, (?P<port>\d+)|\bport:? (?P<other>\d+)", fault.record.text)
    port = (found["port"] or found["other"]) if found else fault.story.arg("port")
    inner = re.search(r"EADDRINUSE|init_process_group|TCPStore|rendezvous", fault.context(30, 2))
    if inner:
        return Words(
            "A port for the ranks' own talk is taken by another process.",
            f"{f'It is port {port}. ' if found else ''}The log says: {fault.quote()}",
            "start again (vLLM picks another one), or set --master-port or VLLM_PORT to a free port; is a worker of an "
            "earlier server still alive?",
        )
    shown = port or "8000 (vLLM's own default)"
    return Words(
        f"Port {shown} is taken by another process.",
        f"The server could not listen on it: {fault.quote()}",
        f"stop whoever listens there (`ss -ltnp 'sport = :{port or 8000}'` names it), or choose another --port",
    )


def _unknown_flag(fault: Fault) -> Words:
    flags = (fault.group("flags") or "").strip()
    return Words(
        f"vLLM does not know the flag {flags.split(' ')[0]}." if flags else "vLLM does not take these flags.",
        f"The log says: {fault.quote()}",
        "correct or remove it in the preset's args; `vllm serve --help=all` lists what this version takes (a flag may "
        "be newer or older than it)",
    )


def _bad_argument(fault: Fault) -> Words:
    flag = fault.group("flag") or "an argument"
    return Words(
        f"vLLM refuses the value of {flag}.",
        f"The log says: {fault.quote()}",
        f"correct {flag.split('/')[-1]} in the preset's args; `vllm serve --help={flag.split('/')[-1].strip('-')}` "
        "shows what it takes",
    )


def _bad_value(fault: Fault) -> Words:
    said = _value_text(fault)
    named = re.findall(r"\b(?:[a-z]+_)+[a-z]+\b", said)
    flags = ", ".join(dict.fromkeys(f"--{name.replace('_', '-')}" for name in named))
    of = _PYDANTIC_HEAD.search(fault.context(6, 0) + "\n" + fault.record.text)
    return Words(
        "vLLM refuses a setting" + (f" ({of['model']})." if of else "."),
        f"It says: {said}",
        f"correct it in the preset's args: {flags}" if flags else "correct that setting in the preset's args",
    )


def _value_text(fault: Fault) -> str:
    for record in (fault.record, *fault.story.after(fault.record, 6)):
        if found := _VALUE_ERROR.match(record.text):
            return found["said"][:400]
    return fault.quote()


def _too_few_cards(fault: Fault) -> Words:
    return Words(
        "More GPUs are asked for than there are.",
        f"The log says: {fault.quote()}",
        "lower --tensor-parallel-size (times --pipeline-parallel-size) to the number of cards, or let the server see "
        "them all (CUDA_VISIBLE_DEVICES)",
    )


def _nvcc(fault: Fault) -> Words:
    said = fault.record.text.lower()
    if "ninja" in said and "nvcc" not in said:
        return Words(
            "A kernel must be compiled at start, and ninja is missing or its build failed.",
            f"The log says: {fault.quote()}",
            "install ninja into the server's environment (`pip install ninja`), and a CUDA toolkit with nvcc of at "
            "least 12.9 for these cards",
        )
    return Words(
        "A kernel must be compiled at start, and no fitting CUDA compiler (nvcc) is there.",
        f"FlashInfer builds kernels for this card when they are first used and needs nvcc for it. The log says: "
        f"{fault.quote()}",
        "install the CUDA toolkit (nvcc 12.9 or newer for SM120) and set CUDA_HOME to it in the preset's env; or "
        "avoid the kernel that needs it, for instance with VLLM_USE_FLASHINFER_SAMPLER=0",
    )


def _disk_full(fault: Fault) -> Words:
    found = re.search(r"(?P<path>/dev/shm\S*)", fault.context(4, 2))
    where = "/dev/shm, the memory that the ranks share," if found else "A disk"
    return Words(
        f"{where[0].upper() + where[1:]} is full.",
        f"The log says: {fault.quote()}",
        "make /dev/shm larger, or remove what earlier servers left in it"
        if found
        else "free space where the model cache (HF_HOME), the compile cache (~/.cache/vllm) or TMPDIR lie",
    )


def _no_card(fault: Fault) -> Words:
    return Words(
        "vLLM sees no usable GPU.",
        f"The log says: {fault.quote()}",
        "does `nvidia-smi` work? After a driver update the machine must be restarted; check CUDA_VISIBLE_DEVICES, and "
        "that this vLLM build and the driver fit together",
    )


SETUP_RULES: tuple[Rule, ...] = (
    Rule(
        "port-in-use",
        "port-in-use",
        "0.5-0.32",
        patterns(
            r"address already in use",
            r"Errno (?:98|48)\b",
            r"EADDRINUSE",
            r"port \d+ is (?:already )?(?:in use|occupied|taken)",
        ),
        _port_in_use,
        when_ready=True,
    ),
    Rule(
        "unknown-flag",
        "bad-flag",
        "0.5-0.32",
        patterns(
            r"error: unrecognized arguments:? (?P<flags>.+)",
            r"error: ambiguous option: (?P<flags>\S+)",
            r"error: the following arguments are required: (?P<flags>.+)",
            r"No such option:? (?P<flags>\S+)",
            r"^(?:usage: )?[\w.-]*vllm\b[^:]{0,40}: error: (?!argument )(?P<flags>.+)",
        ),
        _unknown_flag,
        phase=Phase.START,
    ),
    Rule(
        "bad-argument",
        "bad-value",
        "0.5-0.32",
        patterns(
            r"error: argument (?P<flag>[^:\s]+)(?:, -[\w-]+)*: .*(?:invalid|expected|not allowed|cannot be|must)",
            r"error: argument (?P<flag>\S+): ",
        ),
        _bad_argument,
        phase=Phase.START,
    ),
    Rule(
        "too-few-cards",
        "bad-value",
        "0.8-0.32",
        patterns(r"World size \(\d+\) is larger than the number of available GPUs", r"invalid device ordinal"),
        _too_few_cards,
    ),
    Rule(
        "nvcc-missing",
        "nvcc-missing",
        "0.11-0.32",
        patterns(
            r"Could not find nvcc",
            r"nvcc['\"]?:? (?:command )?not found",
            r"No such file or directory: '[^']*(?:nvcc|ninja)'",
            r"CUDA_HOME environment variable is not set|CUDA_HOME does not exist|Could not find CUDA installation",
            r"nvcc fatal *:",
            r"SM ?12\.?\w* requires CUDA",
            r"No supported CUDA architectures found",
            r"Ninja is required|ninja: (?:command )?not found|Ninja build failed",
        ),
        _nvcc,
        when_ready=True,
    ),
    Rule(
        "disk-full",
        "disk-full",
        "any",
        patterns(r"No space left on device|Errno 28\b|Disk quota exceeded|Not enough free disk space"),
        _disk_full,
        when_ready=True,
    ),
    Rule(
        "no-gpu",
        "no-gpu",
        "0.8-0.32",
        patterns(
            r"No CUDA GPUs are available|Failed to infer device type|CUDA driver version is insufficient",
            r"Driver/library version mismatch|NVML_ERROR_LIB_RM_VERSION_MISMATCH|CUDA unknown error",
        ),
        _no_card,
    ),
    Rule(
        "bad-value",
        "bad-value",
        "0.9-0.32",
        patterns(
            r"^\s*Value error, ",
            r"\d+ validation errors? for \w+",
            r"User-specified max_model_len \(\d+\) is greater than",
            r"must be divisible by (?:tensor parallel size|.*num_heads)",
            r"max_num_batched_tokens \(\d+\) (?:is smaller than|must be greater than)",
            r"max_num_scheduled_tokens is set to -?\d+ based on .* does not allow",
            r"Unknown quantization method|Quantization method specified .* does not match",
            r"Model architectures .* (?:are not supported|failed to be inspected)",
            r"invalid tool call parser|invalid reasoning parser|Tool parser .* not found",
            r"chat template .*(?:doesn't exist|does not exist|failed to be opened)",
            r"No valid attention backend|Invalid attention backend|Selected backend .* is not valid",
        ),
        _bad_value,
        phase=Phase.START,
        tier=1,
    ),
)
