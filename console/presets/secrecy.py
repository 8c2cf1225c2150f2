"""What is a secret in a preset, told by its name, and how it is written down without its value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_NAME = re.compile(r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(?:KEYS?|TOKEN|TOK|PWD)(?:_|\d*$)", re.IGNORECASE)
"""`HF_TOKEN` and `MY_API_KEY`, but not `TOKENIZERS_PARALLELISM` and `MAX_TOKENS`, which are no secrets."""


def is_secret(name: str, needs: Iterable[str] = ()) -> bool:
    """Whether a variable of the environment is a secret, by its own name or one of those its value is made of.

    Args:
        name: the variable.
        needs: the variables that its value asks for.
    """
    return any(_NAME.search(word) for word in (name, *needs))


def masked(changes: Mapping[str, Any], known: Collection[str] = ()) -> dict[str, Any]:
    """Settings as `--set` names them, with `${NAME}` in the place of a secret's value.

    Args:
        changes: the settings.
        known: names that are secrets whatever they are called.
    """
    return {key: _mask(key) if _hides(key, value, known) else value for key, value in changes.items()}


def unmasked(changes: Mapping[str, Any], secrets: Mapping[str, str], known: Collection[str] = ()) -> dict[str, Any]:
    """The inverse: what is not among `secrets` stays masked."""
    return {
        key: (secrets.get(key.removeprefix("env.")) or value) if is_masked(key, value, known) else value
        for key, value in changes.items()
    }


def is_masked(key: str, value: Any, known: Collection[str] = ()) -> bool:
    """Whether this is a secret without its value."""
    return _hides(key, value, known) and value == _mask(key)


def _mask(key: str) -> str:
    return f"${{{key.removeprefix('env.')}}}"


def _hides(key: str, value: Any, known: Collection[str]) -> bool:
    name = key.removeprefix("env.")
    return key != name and value is not None and (name in known or is_secret(name))
