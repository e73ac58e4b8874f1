"""Upload the folder of `dqn export --hub` to a model hub with huggingface_hub. Requires the extra `hub`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from atari_dqn.errors import UserError

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_MESSAGE = "Upload an agent by dqn export"


def require_login(repository: str) -> None:
    """Raise `UserError` for a malformed name, a missing package, or without a login."""
    if not _REPOSITORY.fullmatch(repository):
        raise UserError(f"--push: found {repository!r}, expected OWNER/NAME")
    try:
        from huggingface_hub import get_token
    except ImportError as error:
        raise UserError(
            "--push needs huggingface_hub; install it with `pip install 'atari-dqn[hub]'`"
        ) from error
    if get_token() is None:
        raise UserError("--push: not logged in to the hub; run `hf auth login`, or set HF_TOKEN")


def push(folder: Path, repository: str) -> str:
    """Upload the files of a folder in one commit and return the address of the repository.

    A missing repository is created, with the visibility that the account has set. Raise `UserError` if the
    hub cannot be reached or refuses.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    files = sorted(path for path in folder.iterdir() if path.is_file())
    additions = [CommitOperationAdd(path_in_repo=path.name, path_or_fileobj=path) for path in files]
    api = HfApi()
    try:
        address = api.create_repo(repository, exist_ok=True)
        api.create_commit(repository, operations=additions, commit_message=_MESSAGE)
    except Exception as error:  # the library and the network raise exceptions of any type
        cause = " ".join(str(error).split()) or type(error).__name__
        command = f"hf upload {repository} {shlex.quote(str(folder))} ."
        raise UserError(
            f"--push {repository}: {cause}\n{folder} is complete; `{command}` uploads it"
        ) from error
    return str(address)
