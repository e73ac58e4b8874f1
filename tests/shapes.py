"""The checker that jaxtyping's import hook puts around functions while tests run.

typeguard's own decorator reads source text and stumbles over shapes in string annotations; jaxtyping
hands over the evaluated ones, so that what is left to do is to check each value. Shapes only: other
annotations are mypy's, and a test may pass a stand-in for a part.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

from jaxtyping import AbstractArray
from typeguard import check_type


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    hints = {name: hint for name, hint in function.__annotations__.items() if mentions_array(hint)}
    if not hints:
        return function
    signature = inspect.signature(function)
    result_hint = hints.pop("return", Any)

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments
        for name, hint in hints.items():
            if name in arguments:
                check_type(arguments[name], hint)
        return check_type(function(*args, **kwargs), result_hint)

    return wrapper


def mentions_array(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(mentions_array(part) for part in get_args(hint))
