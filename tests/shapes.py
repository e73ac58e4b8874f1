"""The checker that jaxtyping's import hook puts around functions while tests run.

typeguard's own decorator reads source text and stumbles over shapes in string annotations; jaxtyping
hands over the evaluated ones, so that what is left to do is to check each value. Shapes only: other
annotations are mypy's, and a test may pass a stand-in for a part.

In a test that trains, checks take twice the time of all else. So a function's first calls in a test are
checked, and then ever fewer; all examples of a property are one test.
"""

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from itertools import chain
from typing import Any, get_args

import jaxtyping
from jaxtyping import AbstractArray
from typeguard import check_type

FIRST_CALLS = 8
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_calls: Counter[int] = Counter()
"""How often each function was called in this test, by the identity of its code."""
_jaxtyped = jaxtyping.jaxtyped


def begin_test() -> None:
    """Check every function's next calls again."""
    _calls.clear()


def sparingly(*, typechecker: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return jaxtyping's decorator, for functions and dataclasses such that of many calls few are checked."""

    def decorate(thing: Any) -> Any:
        if inspect.isfunction(thing):
            return sparing(thing, typechecker)
        if not inspect.isclass(thing):
            return _jaxtyped(thing, typechecker=typechecker)
        if is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = sparing(thing.__init__, typechecker)
        return thing

    return decorate


def sparing(function: Callable[..., Any], typechecker: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with checks at some calls; a closure counts those of all that its code has made."""
    code = id(function.__code__)
    each_time: Callable[..., Any] | None = None

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal each_time
        _calls[code] += 1
        count = _calls[code]
        if count > FIRST_CALLS and count & (count - 1) != 0:  # 16, 32, 64 … are checked
            return function(*args, **kwargs)
        if each_time is None:
            each_time = _jaxtyped(function, typechecker=typechecker)
        return each_time(*args, **kwargs)

    return wrapper


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    hints = {name: hint for name, hint in function.__annotations__.items() if mentions_array(hint)}
    if not hints:
        return function
    parameters = inspect.signature(function).parameters
    names = tuple(parameters)
    assert not any(parameters[name].kind in VARIADIC for name in hints.keys() & set(names))
    result_hint = hints.pop("return", None)

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name, value in chain(zip(names, args, strict=False), kwargs.items()):
            if name in hints:
                check(value, hints[name])
        result = function(*args, **kwargs)
        if result_hint is not None:
            check(result, result_hint)
        return result

    return wrapper


def check(value: Any, hint: Any) -> None:
    """Raise an error unless a value is as its hint says."""
    if not (is_array(hint) and isinstance(value, hint)):  # most hints, and quicker
        check_type(value, hint)


def is_array(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, AbstractArray)


def mentions_array(hint: Any) -> bool:
    return is_array(hint) or any(mentions_array(part) for part in get_args(hint))
