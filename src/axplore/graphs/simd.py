"""Eight numbers at once: a vector type for compiled code.

A batch keeps the values of eight goals next to each other, [S, LANES], so that one transition serves eight goals with
one multiplication. Numba has no vectors of its own and leaves such loops scalar (measured: half the speed). So this
module gives compiled functions a type, eight doubles that live in a vector register, and the few operations that
sweeps need. Where a processor has shorter registers, LLVM splits the vector. Arrays of single precision have
`NARROW_LANES` numbers in a row, which take the same room.

    load(array, row), store(array, row, lanes)   a row of an array [., LANES] or [., NARROW_LANES], contiguous
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
NARROW_LANES: Final = 16
"""The number of lanes in single precision."""

_Emitter: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""Writes instructions, given Numba's context, LLVM's builder, the signature and the arguments."""

_ELEMENTS: Final = {types.float64: (ir.DoubleType(), LANES), types.float32: (ir.FloatType(), NARROW_LANES)}


class LanesType(types.Type):
    """The type of the numbers in a vector register: eight doubles, or sixteen numbers of single precision."""

    def __init__(self, number: Any) -> None:
        self.number = number
        super().__init__(name=f"Lanes({number})")


@extending.register_model(LanesType)
class _LanesModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, described: Any) -> None:
        super().__init__(manager, described, _vector(described))  # type: ignore[no-untyped-call]


def _vector(lanes: Any) -> Any:
    return ir.VectorType(*_ELEMENTS[lanes.number])


def _row_pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Returns where the row `arguments[1]` of the array `arguments[0]` starts."""
    described = signature.args[0]
    array = context.make_array(described)(context, builder, arguments[0])
    row = context.cast(builder, arguments[1], signature.args[1], types.uint64)
    vector = _vector(LanesType(described.dtype))
    first = builder.gep(array.data, [builder.mul(row, ir.Constant(row.type, vector.count))])
    return builder.bitcast(first, vector.as_pointer())


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
    first_everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, first_everywhere)


def _load(_: Any, array: Any, row: Any) -> tuple[Any, _Emitter]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_row_pointer(context, builder, signature, arguments))
        loaded.align = array.dtype.bitwidth // 8  # arrays are aligned for numbers, not for vectors
        return loaded

    return LanesType(array.dtype)(array, row), emit


def _store(_: Any, array: Any, row: Any, lanes: Any) -> tuple[Any, _Emitter]:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        stored = builder.store(arguments[2], _row_pointer(context, builder, signature, arguments))
        stored.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, row, lanes), emit


def _spread_number(_: Any, number: Any) -> tuple[Any, _Emitter]:
    lanes = LanesType(number)

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0], _vector(lanes))

    return lanes(number), emit


def _multiply_add(_: Any, number: Any, lanes: Any, summand: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        product = builder.fmul(_spread(builder, arguments[0], arguments[1].type), arguments[1])
        return builder.fadd(product, arguments[2])

    return lanes(number, lanes, summand), emit


def _add(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return left(left, right), emit


def _subtract(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fsub(*arguments)

    return left(left, right), emit


def _minimum(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *arguments), *arguments)

    return left(left, right), emit


def _maximum(_: Any, left: Any, right: Any) -> tuple[Any, _Emitter]:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return left(left, right), emit


load: Final[Any] = extending.intrinsic(_load)
store: Final[Any] = extending.intrinsic(_store)
spread: Final[Any] = extending.intrinsic(_spread_number)
multiply_add: Final[Any] = extending.intrinsic(_multiply_add)
add: Final[Any] = extending.intrinsic(_add)
subtract: Final[Any] = extending.intrinsic(_subtract)
minimum: Final[Any] = extending.intrinsic(_minimum)
maximum: Final[Any] = extending.intrinsic(_maximum)
