"""Prometheus text → samples: bounded, finite numbers only, and a sentence where the page is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from console.errors import ConsoleError
from console.metrics.names import OLD_HITS, WANTED

LIMIT_CHARS = 8_000_000
"""A real page has 55,000; what is larger is no metrics page."""
LIMIT_SAMPLES = 50_000
PREFIX = "vllm:"
_KEPT_HEADS = 4096
"""A page has about 300 lines that are read."""


class MetricsError(ConsoleError):
    """A page that cannot be read as vLLM's metrics."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the page; `value` is `None` where the page says NaN or infinity."""

    labels: Mapping[str, str]
    value: float | None


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one page by name, names as they stand on the wire."""

    by_name: Mapping[str, tuple[Sample, ...]]
    prefix_unit: str | None = None
    """What the old `gpu_prefix_cache_*` counters count, by the page's own words: `tokens` or `blocks`."""

    def get(self, name: str) -> tuple[Sample, ...]:
        """The samples of `name`; none if the page has none."""
        return self.by_name.get(name, ())

    def first(self, names: tuple[str, ...]) -> str | None:
        """The first of `names` that is on the page."""
        return next((name for name in names if name in self.by_name), None)


def parse(text: str) -> Samples:
    """The samples of a `/metrics` page that this console reads (`names.WANTED`).

    A page that was cut off (no newline at its end) loses its last line and with it the series that line belongs to:
    a sum over some of a series' labels is a wrong number that looks right.

    Raises:
        MetricsError: HTML, too large, not Prometheus text, or without a single vLLM series.
    """
    if text.lstrip()[:1] == "<":
        raise _not_metrics("it is an HTML page", "something else answers at this address; give vLLM's own")
    if len(text) > LIMIT_CHARS:
        raise _not_metrics(f"it is larger than {LIMIT_CHARS:,} characters", "check that the address is vLLM's")
    found: dict[str, list[Sample]] = {}
    lines, rest = _whole_lines(text)
    for name, sample in _samples(lines):
        found.setdefault(name, []).append(sample)
    if rest:
        found.pop(_name_of(rest), None)
        found = {name: samples for name, samples in found.items() if not (_cut_name(rest) and name.startswith(rest))}
    if not any(name.startswith(PREFIX) for name in found):
        raise _not_metrics(
            "it has no series of vLLM",
            "check that the address is vLLM's and that it runs without --disable-log-stats",
        )
    whole = MappingProxyType({name: tuple(samples) for name, samples in found.items()})
    return Samples(whole, _prefix_unit(text))


def _prefix_unit(text: str) -> str | None:
    """Read from the help line: 0.8.5 counted blocks, later versions tokens, under the same name."""
    at = text.find(f"# HELP {OLD_HITS}")
    if at < 0:
        return None
    about = text[at : text.find("\n", at)]
    return next((unit for unit in ("tokens", "blocks") if unit in about), None)


def _not_metrics(why: str, fix: str) -> MetricsError:
    return MetricsError("The metrics page cannot be read", why, fix)


def _whole_lines(text: str) -> tuple[list[str], str]:
    """The lines that are read here, and what stands after the last newline."""
    *lines, rest = text.split("\n")
    return [line for line in lines if _name_of(line) in WANTED], rest


def _name_of(line: str) -> str:
    return line.partition("{")[0].partition(" ")[0].partition("\t")[0]


def _cut_name(line: str) -> bool:
    """Whether a page was cut within the name of a series."""
    return line.startswith(PREFIX) and "{" not in line and " " not in line


def _samples(lines: list[str]) -> Iterator[tuple[str, Sample]]:
    if len(lines) > LIMIT_SAMPLES:
        raise _not_metrics(f"it has more than {LIMIT_SAMPLES:,} series", "check that the address is vLLM's")
    try:
        for line in lines:
            head, number = _halves(line)
            name, labels = _head(head)
            value = float(number) if "_" not in number else math.nan
            yield name, Sample(labels, value if math.isfinite(value) else None)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _not_metrics(
            f"it is not Prometheus text: {str(error)[:120]}", "check that the address is vLLM's"
        ) from None


def _halves(line: str) -> tuple[str, str]:
    """Name with labels, and the value; a timestamp behind it, which some proxies add, is left out."""
    name, brace, labels = line.rpartition("}")
    if not brace:
        name, *numbers = line.split()
    else:
        numbers = labels.split()
    if len(numbers) not in (1, 2) or (len(numbers) == 2 and not numbers[1].lstrip("-").isdecimal()):
        raise ValueError(f"no number, or more than one, on the line {line[:80]!r}")
    return name + brace, numbers[0]


@lru_cache(maxsize=_KEPT_HEADS)
def _head(head: str) -> tuple[str, Mapping[str, str]]:
    """Name and labels of a line without its value. They come again with every page, and reading them is dear."""
    # Imported here: the first frame of the console must not wait for it.
    from prometheus_client.parser import text_string_to_metric_families

    ((sample,),) = (family.samples for family in text_string_to_metric_families(f"{head} 1\n"))
    if sample.value != 1 or sample.timestamp is not None:
        raise ValueError(f"more than one number on the line {head[:80]!r}")
    return sample.name, MappingProxyType(dict(sample.labels))
