"""`completion`: a script for bash, zsh or fish, made from the parser itself, so that it never lags behind."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping

from console.cli.house import House
from console.cli.voice import show
from console.errors import Exit

_PLAIN = re.compile(r"[\w.+@:-]+")
"""Names that a shell takes as they are: it expands what it is given to choose from, and would run what stands there."""
_OF_PRESETS = ("up", "show", "lint", "restart")
_AB = ("mtp", "chunk", "prefix", "graphs", "aa", "custom", "replay")
_AB_RUNS = ("list", "show", "compare", "resume", "stop", "adopt")
_NAMES = "qwen-console completion presets 2>/dev/null"
Verbs = Mapping[str, argparse.ArgumentParser]


def completion(args: argparse.Namespace) -> int:
    """Print the script; `presets` prints what the scripts ask for."""
    if args.shell == "presets":
        show(name for name in House.of(args).catalog().presets if _PLAIN.fullmatch(name))
        return Exit.OK
    from console.cli.parser import build

    parser, verbs = build()
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]
    show(write(parser, verbs))
    return Exit.OK


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The long options that its help shows."""
    return [word for action in _shown(parser) for word in action.option_strings if word.startswith("--")]


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.help != argparse.SUPPRESS]


def _words(name: str, verb: argparse.ArgumentParser) -> list[str]:
    """What may follow a verb beside files."""
    if name == "ab":
        return [*_AB, *_AB_RUNS, *_options(verb)]
    choices = [word for a in _shown(verb) if not a.option_strings and a.choices for word in a.choices]
    return [*choices, *_options(verb)]


def _cases(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    """The branches that bash and zsh share."""
    first = " ".join([*verbs, *_options(parser)])
    yield f"    '') words={shlex.quote(first)} ;;"
    for name, verb in verbs.items():
        words = " ".join(_words(name, verb))
        names = f'; words="$words $({_NAMES})"' if name in _OF_PRESETS else ""
        yield f"    {name}) words={shlex.quote(words)}{names} ;;"


def _bash(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    yield "# qwen-console completion bash > ~/.local/share/bash-completion/completions/qwen-console"
    yield "_qwen_console() {"
    yield "  local word words verb='' cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
    yield '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield f'    case "$word" in {"|".join(verbs)}) verb=$word; break ;; esac'
    yield "  done"
    yield f'  if [ "$prev" = --preset ]; then words=$({_NAMES})'
    yield '  else case "$verb" in'
    yield from _cases(parser, verbs)
    yield "  esac; fi"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "}"
    yield "complete -o default -F _qwen_console qwen-console"


def _zsh(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    yield "#compdef qwen-console"
    yield "# qwen-console completion zsh > ~/.local/share/zsh-completions/_qwen-console"
    yield "# and in ~/.zshrc, before compinit: fpath=(~/.local/share/zsh-completions $fpath)"
    yield "_qwen_console() {"
    yield "  local word words_ verb=''"
    yield '  for word in "${words[@]:1:$((CURRENT-2))}"; do'
    yield f'    case "$word" in {"|".join(verbs)}) verb=$word; break ;; esac'
    yield "  done"
    yield f'  if [[ "${{words[CURRENT-1]}}" == --preset ]]; then words_=$({_NAMES})'
    yield '  else case "$verb" in'
    yield from (line.replace("words=", "words_=").replace("$words ", "$words_ ") for line in _cases(parser, verbs))
    yield "  esac; fi"
    yield "  compadd -- ${=words_} || _files"
    yield "}"
    yield 'if [ "$funcstack[1]" = _qwen-console ]; then _qwen_console "$@"; else compdef _qwen_console qwen-console; fi'


def _fish(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    yield "# qwen-console completion fish > ~/.config/fish/completions/qwen-console.fish"
    told = {a.dest: a.help or "" for s in parser._subparsers._group_actions for a in s._choices_actions}  # type: ignore[union-attr]
    for name in verbs:
        about = shlex.quote(told.get(name, ""))
        yield f"complete -c qwen-console -n __fish_use_subcommand -a {name} -d {about}"
    yield from _fish_options("__fish_use_subcommand", parser)
    for name, verb in verbs.items():
        seen = f"'__fish_seen_subcommand_from {name}'"
        yield from _fish_options(seen, verb)
        words = [word for word in _words(name, verb) if not word.startswith("-")]
        if words:
            yield f"complete -c qwen-console -n {seen} -a {shlex.quote(' '.join(words))}"
        if name in _OF_PRESETS:
            yield f"complete -c qwen-console -n {seen} -f -a '({_NAMES})'"


def _fish_options(when: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in _shown(parser):
        for word in action.option_strings:
            if word.startswith("--"):
                about = shlex.quote((action.help or "").replace("%%", "%"))
                wants = "" if action.nargs == 0 else " -r"
                yield f"complete -c qwen-console -n {when} -l {word[2:]}{wants} -d {about}"
