"""Labels in a fixed order, which arrays over states or actions refer to."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, final, overload

from axplore.errors import InvalidInputError
from axplore.labels import Json, decode_label, encode_label

MOST_SHARED: Final = 64
"""Longer lists of labels are not kept to be shared."""


@final
class Labels(Sequence[Hashable]):
    """Labels of states or actions in the order in which an array lists them.

    An index is meaningless without the order that it belongs to, so whatever holds indices holds its `Labels` too.
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self._labels = tuple(labels)

    @classmethod
    def shared(cls, labels: Iterable[Hashable]) -> Labels:
        """Returns labels; the same object for the same few texts or numbers, such as the actions of most states."""
        labels = tuple(labels)
        kinds = set(map(type, labels))
        if len(labels) > MOST_SHARED or kinds not in ({str}, {int}):  # 1, True and 1.0 are equal, and not the same
            return cls(labels)
        return _shared(kinds.pop(), labels)

    @cached_property
    def indices(self) -> dict[Hashable, int]:
        """The index of each label."""
        return {label: index for index, label in enumerate(self._labels)}

    def as_tuple(self) -> tuple[Hashable, ...]:
        """Returns the labels as a tuple, always the same one."""
        return self._labels

    def as_json(self) -> list[Json]:
        """Returns the labels as JSON values."""
        return self._as_json if len(self) <= MOST_SHARED else list(map(encode_label, self._labels))

    @cached_property
    def _as_json(self) -> list[Json]:
        return list(map(encode_label, self._labels))

    @classmethod
    def from_json(cls, content: Json) -> Labels:
        """Returns the labels that `as_json` was given."""
        if not isinstance(content, list):
            raise InvalidInputError("labels are not a list")
        kinds = set(map(type, content))
        if len(content) > MOST_SHARED or kinds not in ({str}, {int}):
            return cls(map(decode_label, content))
        return _read(kinds.pop(), tuple(content))

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> Labels: ...
    def __getitem__(self, index: int | slice) -> Hashable | Labels:
        return Labels(self._labels[index]) if isinstance(index, slice) else self._labels[index]

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._labels)

    def __contains__(self, label: object) -> bool:
        return label in self.indices

    def __add__(self, others: Iterable[Hashable]) -> Labels:
        return Labels((*self._labels, *others))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Labels) and self._labels == other._labels

    def __hash__(self) -> int:
        return hash(self._labels)

    def __repr__(self) -> str:
        return f"Labels({list(self._labels)!r})"


@lru_cache(maxsize=4096)
def _read(kind: type, content: tuple[Json, ...]) -> Labels:  # noqa: ARG001 (likewise)
    return Labels.shared(map(decode_label, content))


@lru_cache(maxsize=4096)
def _shared(kind: type, labels: tuple[Hashable, ...]) -> Labels:  # noqa: ARG001 (tells 1 from True)
    return Labels(labels)
