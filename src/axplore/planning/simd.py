"""Eight numbers at once: a vector type for compiled code.

A batch keeps the values of eight goals next to each other, [S, LANES], so that one transition serves eight goals with
one multiplication. Numba has no vectors of its own and leaves such loops scalar (measured: half the speed). So this
module gives compiled functions a type, eight doubles that live in a vector register, and the few operations that
sweeps need. Where a processor has shorter registers, LLVM splits the vector.

    load(array, row), store(array, row, lanes)   a row of an array [., LANES], contiguous
    spread(number)                               the same number in every lane
    multiply_add(number, lanes, summand)         number * lanes + summand
    add, subtract, minimum, maximum              lane by lane
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from llvmlite import ir
from numba import extending, types

LANES: Final = 8

_Emitter: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""Writes instructions, given Numba's context, LLVM's builder, the signature and the arguments."""

_VECTOR: Final = ir.VectorType(ir.DoubleType(), LANES)
_UNDEFINED: Final = ir.Constant(_VECTOR, ir.Undefined)
_FIRST_EVERYWHERE: Final = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
_ALIGNMENT: Final = 8  # arrays are aligned for doubles, not for vectors


class LanesType(types.Type):
    """The type of eight doubles in a vector register."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@extending.register_model(LanesType)
class _LanesModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, described: Any) -> None:
        super().__init__(manager, described, _VECTOR)  # type: ignore[no-untyped-call]


_lanes: Final[Any] = LanesType()


def _row_pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Returns where the row `arguments[1]` of the array `arguments[0]` starts."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    row = context.cast(builder, arguments[1], signature.args[1], types.uint64)
    first = builder.gep(array.data, [builder.mul(row, ir.Constant(row.type, LANES))])
    return builder.bitcast(first, _VECTOR.as_pointer())


def _spread(builder: Any, number: Any) -> Any:
    first = builder.insert_element(_UNDEFINED, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, _UNDEFINED, _FIRST_EVERYWHERE)


def _load(_: Any, array: Any, row: Any) -> tuple[Any, _Emitter]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_row_pointer(context, builder, signature, arguments))
        loaded.align = _ALIGNMENT
        return loaded

    return _lanes(array, row), emit


def _store(_: Any, array: Any, row: Any, lanes: Any) -> tuple[Any, _Emitter]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        stored = builder.store(arguments[2], _row_pointer(context, builder, signature, arguments))
        stored.align = _ALIGNMENT
        return context.get_dummy_value()

    return types.void(array, row, lanes), emit


def _spread_number(_: Any, number: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0])

    return _lanes(number), emit


def _multiply_add(_: Any, number: Any, lanes: Any, summand: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        product = builder.fmul(_spread(builder, arguments[0]), arguments[1])
        return builder.fadd(product, arguments[2])

    return _lanes(number, lanes, summand), emit


def _add(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return _lanes(left, right), emit


def _subtract(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fsub(*arguments)

    return _lanes(left, right), emit


def _minimum(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *arguments), *arguments)

    return _lanes(left, right), emit


def _maximum(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return _lanes(left, right), emit


load: Final[Any] = extending.intrinsic(_load)
store: Final[Any] = extending.intrinsic(_store)
spread: Final[Any] = extending.intrinsic(_spread_number)
multiply_add: Final[Any] = extending.intrinsic(_multiply_add)
add: Final[Any] = extending.intrinsic(_add)
subtract: Final[Any] = extending.intrinsic(_subtract)
minimum: Final[Any] = extending.intrinsic(_minimum)
maximum: Final[Any] = extending.intrinsic(_maximum)
