"""What is a secret in a preset, told by its name or its looks, and how it is written down without its value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_NAME = re.compile(r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(?:KEYS?|TOKEN|TOK|PWD)(?:_|\d*$)", re.IGNORECASE)
"""`HF_TOKEN` and `MY_API_KEY`, but not `TOKENIZERS_PARALLELISM` and `MAX_TOKENS`, which are no secrets."""

_MARKS = re.compile(
    r"^(?:Bearer|Basic|Token)\s+\S"
    r"|^(?:sk|rk|pk)-[\w-]{8}|^hf_\w{8}|^gh[pousr]_\w{8}|^github_pat_|^glpat-|^xox[a-z]-|^nvapi-|^AKIA[A-Z\d]{12}"
    r"|^eyJ[\w-]+\.[\w-]+\.[\w-]*$"
    r"|://[^/\s@]*:[^/\s@]+@",
    re.IGNORECASE,
)
"""How the keys of well-known services begin, a signed token (JWT), and an address with a password in it."""
_TOKEN = re.compile(r"[A-Za-z\d_+=-]{32,}|[A-Za-z\d+/]{30,}={1,2}")
_REVISION = re.compile(r"[\da-f]{40}")
"""Of a repository: no secret, and common."""
_LONG, _DIGITS = 16, 3


def is_secret(name: str, needs: Iterable[str] = (), value: Any = None) -> bool:
    """Whether a variable of the environment is a secret: by its name, by what its value is made of, or by its looks.

    Args:
        name: the variable.
        needs: the variables that its value asks for.
        value: the value, where it is known.
    """
    return any(_NAME.search(word) for word in (name, *needs)) or looks_secret(value)


def looks_secret(value: Any) -> bool:
    """Whether this is how keys look: marked as one, or one word of 32 signs and more as no human makes them up.

    A word counts as that when a piece of 16 without a dash mixes letters and digits. Names of models, identifiers of
    cards, paths and revisions do not look so.
    """
    if not isinstance(value, str):
        return False
    if _MARKS.search(value):
        return True
    if not _TOKEN.fullmatch(value) or _REVISION.fullmatch(value):
        return False
    return any(_is_random(piece) for piece in re.split(r"[_-]", value))


def _is_random(piece: str) -> bool:
    digits = sum(sign.isdigit() for sign in piece)
    return len(piece) >= _LONG and digits >= _DIGITS and len(piece) - digits >= _DIGITS


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
    # What stands there masked had a value that looked like one.
    return key != name and value is not None and (name in known or is_secret(name, value=value) or value == _mask(key))
