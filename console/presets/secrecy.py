"""What is a secret in a preset, told by its name or its looks, and how it is written down without its value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from console.files import parse_json

_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(?:KEYS?|TOKEN|TOK|PWD)(?:_|\d*$)|(?:^|_)PASS\d*$", re.IGNORECASE
)
"""`HF_TOKEN` and `MY_API_KEY`, but not `TOKENIZERS_PARALLELISM` and `MAX_TOKENS`, which are no secrets."""

_ARG_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(?:^|_)PASS$|(?:API|ACCESS|PRIVATE|AUTH)_?KEY$"
    r"|(?:API|ACCESS|AUTH|BEARER|REFRESH|HF|HUB)_?TOKEN$",
    re.IGNORECASE,
)
"""Stricter: what tells a model how its text is cut is called `eos_token` and `pad_token`."""
COVERED = "•••"
_SHORTEST = 4

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


def arg_secrets(value: Any, name: str = "") -> frozenset[str]:
    """The secrets in a value of `args`, however deep in its maps and lists they stand.

    Args:
        value: the value, or all of `args`.
        name: the key that it stands under.
    """
    if isinstance(value, Mapping):
        return frozenset().union(*(arg_secrets(inner, str(key)) for key, inner in value.items()))
    if isinstance(value, list | tuple):
        return frozenset().union(*(arg_secrets(inner, name) for inner in value))
    # What stands as `${NAME}` is covered already.
    if not isinstance(value, str) or not value or value.startswith("${"):
        return frozenset()
    if value.lstrip().startswith("{"):
        with suppress(ValueError):
            return arg_secrets(parse_json(value), name)
    told = _ARG_NAME.search(name.replace("-", "_")) or looks_secret(value)
    return frozenset({value}) if told else frozenset()


def covered(value: Any, secrets: Collection[str] | None = None) -> Any:
    """What is shown or reported of `args`: the same, with the secrets in it covered."""
    hidden = arg_secrets(value) if secrets is None else secrets
    if not hidden:
        return value
    if isinstance(value, Mapping):
        return {key: covered(inner, hidden) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [covered(inner, hidden) for inner in value]
    if isinstance(value, str):
        # A short one would be found in half of all words.
        for secret in (one for one in hidden if one == value or len(one) >= _SHORTEST):
            value = value.replace(secret, COVERED)
    return value


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
