"""Optional dependencies, imported on first use."""

from importlib import import_module
from types import ModuleType

from taciturn.errors import MissingExtra


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(
            f"this needs {package}, which is not installed; install the extra {extra}, in a clone: "
            f"pip install '.[{extra}]'"
        ) from None
