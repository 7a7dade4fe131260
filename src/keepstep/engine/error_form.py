"""An error as it is kept: its class, message and traceback, as text."""

from __future__ import annotations

import traceback

TRACEBACK_CHARS_MAX = 20_000
"""The end of a traceback tells most."""
MESSAGE_CHARS_MAX = 10_000


def error_form(error: BaseException) -> dict[str, str]:
    """What is stored of an error."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - a message that cannot be made must not hide the error
        message = f"<no message: {type(broken).__name__}>"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": _writable(message[:MESSAGE_CHARS_MAX]),
        "traceback": _writable(text[-TRACEBACK_CHARS_MAX:]),
    }


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
