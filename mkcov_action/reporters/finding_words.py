"""What reporters for GitHub say of a finding alike: its message, and the file it points into."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from mkcov_action.finding import Finding, Location
from mkcov_action.reporters.clean import NAME_LIMIT, clean

_PATH_LIMIT = 1_000


def told(finding: Finding) -> tuple[str, str | None]:
    """The message and the tensor's name in it, neither clean; an endless name is cut in both.

    Else the limit of a message would fall within the name, and what is wrong with it be lost.
    """
    message, tensor = finding.message, finding.tensor
    if not tensor:
        return message, tensor
    shown = tensor
    if len(tensor) > NAME_LIMIT:
        shown = f"{tensor[:NAME_LIMIT]}... ({len(tensor):,} characters)"
        message = message.replace(tensor, shown)
    return (message if shown in message else f"{shown}: {message}"), shown


def path_of(location: Location, limit: int = _PATH_LIMIT) -> str:
    """The plain path behind a percent-encoded `uri`, cleaned: a name with control characters, a
    backslash or bytes that are no UTF-8 matches no file of the change, and does no harm.
    """
    path = unquote_to_bytes(location.uri.encode("utf-8", "surrogatepass"))
    return clean(path.decode("utf-8", "backslashreplace"), limit)
