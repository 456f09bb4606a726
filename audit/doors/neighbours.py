"""The door to other tools' settings: read, never written; broken, huge or hostile ones are one error."""

import json
import tomllib
from pathlib import Path
from typing import Any

from audit.doors.config import read_config_file
from audit.doors.sound import json_loads, unsound
from audit.words.errors import BadFile

_LARGEST = 1 << 20  # bytes; settings are written by hand


def read_settings(path: Path) -> dict[str, Any]:
    """What Claude Code's settings.json holds. Raises BadFile, which shows nothing of the file."""
    text = _text(path)
    try:
        found = json_loads(text)
    except json.JSONDecodeError as error:
        raise BadFile(
            str(path), f"line {error.lineno} column {error.colno}", f"not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise BadFile(str(path), "", "not JSON: nested too deep") from None
    except ValueError:
        raise BadFile(str(path), "", "not JSON: a key stands twice, or a number is too long") from None
    return _mapping(path, found, len(text))


def read_toml(path: Path) -> dict[str, Any]:
    """What Codex's config.toml holds. Raises BadFile, which shows nothing of the file."""
    text = _text(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Its own words quote the file: only where it was is told.
        place = str(error).rpartition("(")[2].removesuffix(")").removeprefix("at ")
        raise BadFile(str(path), place if "line" in place else "", "not TOML") from None
    except RecursionError:
        raise BadFile(str(path), "", "not TOML: nested too deep") from None
    except ValueError:
        raise BadFile(str(path), "", "not TOML: a number is too long to be read") from None
    return _mapping(path, found, len(text))


def read_profile_list(path: Path) -> tuple[str, list[Any]]:
    """(key path of the list, its items) of a YAML or JSON file. Raises BadFile."""
    _text(path)
    found = read_config_file(path)
    key = next((key for key in ("profiles", "providers") if isinstance(found, dict) and key in found), "")
    listed = found[key] if key else found
    if not isinstance(listed, list):
        raise BadFile(
            str(path), key, "expected a list of profiles: {name, base_url, api_key_env, model, role}"
        )
    return key, listed


def _text(path: Path) -> str:
    try:
        if not path.exists():
            raise BadFile(str(path), "", "no such file")
        if not path.is_file():  # a pipe or a device may never end
            raise BadFile(str(path), "", "is no ordinary file")
        if path.stat().st_size > _LARGEST:
            raise BadFile(str(path), "", "is larger than 1 MB, as no settings are: not read")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadFile(str(path), "", "is not UTF-8") from None
    except (OSError, ValueError) as error:
        raise BadFile(
            str(path), "", f"cannot be read: {getattr(error, 'strerror', None) or 'no path'}"
        ) from None


def _mapping(path: Path, found: Any, length: int) -> dict[str, Any]:
    fault = unsound(found, length)
    if fault is not None:
        raise BadFile(str(path), *fault)
    if not isinstance(found, dict):
        raise BadFile(str(path), "", "expected settings: an object at the top")
    return found
