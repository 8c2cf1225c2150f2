"""Rules about the model: a name or a folder that leads to none, a hub that does not give it."""

from __future__ import annotations

import re

from console.server.diagnosis.rule import Fault, Rule, Words, patterns
from console.server.status import Phase

_PATH = re.compile(r"['\"`](?P<path>(?:/|~|\./)[^'\"`]+)['\"`]")
_URL_MODEL = re.compile(r"https?://[^/\s]+/(?:api/models/)?(?P<repo>[\w.-]+/[\w.-]+)")
_GATED = re.compile(r"gated repo|401 Client Error|403 Client Error|is restricted|GatedRepoError|Unauthorized", re.I)
_OFFLINE = re.compile(
    r"LocalEntryNotFound|OfflineMode|outgoing traffic has been disabled|couldn't connect to|"
    r"HF_HUB_OFFLINE|local cache|disk cache|offline",
    re.I,
)


def _model_missing(fault: Fault) -> Words:
    text = fault.context(12, 6)
    model = _model_name(fault)
    if _GATED.search(text):
        return Words(
            f"The model {model} may not be read with this account: it is gated or private, or does not exist.",
            f"The log says: {fault.quote()}",
            "accept its terms on the model's page and give the server a token (HF_TOKEN in the preset's env), or check "
            "the name",
        )
    if model.startswith(("/", "~", ".")):
        return Words(
            f"There is no usable model at {model}.",
            f"The folder does not exist or is not a model (config.json, weights). The log says: {fault.quote()}",
            f"check the preset's model path: does {model} exist on this machine, with config.json in it?",
        )
    if _OFFLINE.search(text):
        return Words(
            f"The model {model} is not in the local cache, and the server may not or cannot download it.",
            f"The log says: {fault.quote()}",
            "download it once without HF_HUB_OFFLINE (and with a network), or check HF_HOME and the model's name",
        )
    return Words(
        f"The model {model} was not found.",
        f"The log says: {fault.quote()}",
        "check the preset's model: a name as on the hub (owner/name) or an existing folder with config.json",
    )


def _model_name(fault: Fault) -> str:
    if name := fault.group("model") or fault.group("other"):
        return name.strip("'\"`.,")
    if found := _PATH.search(fault.record.text):
        return found["path"].rstrip("/")
    known = fault.story.facts.model or fault.story.arg("model") or fault.story.arg("model_tag")
    if known:
        return known
    found = _URL_MODEL.search(fault.context(0, 6))
    return found["repo"] if found else "(its name is not in the log)"


MODEL_RULES: tuple[Rule, ...] = (
    Rule(
        "model-missing",
        "model-missing",
        "0.5-0.32",
        patterns(
            r"Repo id must (?:be in the form|use alphanumeric|not)[^:]*: '(?P<model>[^']+)'",
            r"Invalid repository ID or local directory specified:? '(?P<model>[^']+)'",
            r"(?<!\S)(?P<model>\S{1,300}) is not a local folder and is not a valid model identifier",
            r"(?<!\S)(?P<model>\S{1,300}) does not appear to have (?:a file named|files named) ",
            r"Can't load (?:the )?(?:configuration|config|tokenizer|feature extractor|processor)\b.*? (?:of|for) "
            r"'(?P<model>[^']+)'",
            r"Cannot find any model weights with [`'\"](?P<model>[^`'\"]+)",
            r"(?:Model|Path|Folder|Directory)\b[^.]{0,40}? [`'\"]?(?P<model>[~/][^`'\"\s]+)[`'\"]? "
            r"(?:does not exist|not found|doesn't exist)",
            r"No supported config format found in (?P<model>\S{1,300})|Unrecognized model in (?P<other>\S{1,300})",
            r"HFValidationError|RepositoryNotFoundError|Repository Not Found|RevisionNotFoundError|GatedRepoError",
            r"You are trying to access a gated repo|Cannot access gated repo|Access to model .* is restricted",
            r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled",
            r"couldn't connect to 'https?://\S+' to load",
            r"cannot find the (?:appropriate snapshot folder|requested files) ",
            r"(?:No such file or directory|FileNotFoundError).*'(?P<model>/[^']*?)"
            r"/(?:(?:config|tokenizer|params)\w*\.json|[^/']+\.safetensors)'",
        ),
        _model_missing,
        phase=Phase.START,
    ),
    Rule(
        "model-http",
        "model-missing",
        "0.8-0.32",
        patterns(r"\b(?:404|401|403) Client Error"),
        _model_missing,
        phase=Phase.START,
        tier=1,
    ),
)
