"""Functions, generators and coroutines that run their body under a grad mode. The modes themselves are C types."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any


def guard(function: Callable[..., Any], mode: Callable[..., Any], value: bool | None) -> Any:
    """Wraps `function` so that its body runs under `mode(value)` (`mode()` where value is None)."""
    make = mode if value is None else functools.partial(mode, value)
    if inspect.isclass(function):
        warnings.warn(
            f"{mode.__name__}: decorating a class is deprecated and decorates its __init__ only; decorate the methods",
            FutureWarning,
            stacklevel=3,
        )
        function.__init__ = guard(function.__init__, mode, value)  # type: ignore[method-assign]
        return function
    return wrap(function, make)


def wrap(function: Callable[..., Any], make: Callable[[], Any]) -> Callable[..., Any]:
    """Wraps `function`: every step of its body runs inside a fresh `make()`; the caller's mode is back in between."""
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def async_generator(*args: Any, **kwargs: Any) -> Any:
            body = function(*args, **kwargs)
            try:
                value = await _Stepper(body.__anext__(), make)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # thrown in by the caller: it belongs to the body
                        value = await _Stepper(body.athrow(error), make)
                    else:
                        value = await _Stepper(body.asend(sent), make)
            except StopAsyncIteration:
                return
            finally:
                await _Stepper(body.aclose(), make)

        return async_generator

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Stepper(function(*args, **kwargs), make)

        return coroutine

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from _steps(function(*args, **kwargs), make))

        return generator

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return plain


def _steps(body: Any, make: Callable[[], Any]) -> Any:
    """Drives a generator; send, throw and close reach it, each step under the mode."""
    try:
        with make():
            value = next(body) if hasattr(body, "__next__") else body.send(None)
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with make():
                    body.close()
                raise
            except BaseException as error:
                with make():
                    value = body.throw(error)
            else:
                with make():
                    value = body.send(sent)
    except StopIteration as stop:
        return stop.value


class _Stepper:
    """Awaits something with every step of it under the mode."""

    def __init__(self, awaitable: Any, make: Callable[[], Any]) -> None:
        self.awaitable = awaitable
        self.make = make

    def __await__(self) -> Any:
        body = self.awaitable if inspect.iscoroutine(self.awaitable) else self.awaitable.__await__()
        return (yield from _steps(body, self.make))
