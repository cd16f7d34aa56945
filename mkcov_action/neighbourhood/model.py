"""The views: what is known of a thing and of what surrounds it.

These records are the JSON of `mkcov show --json` as they stand, key by key, so that
mkcov_action/schema/show.schema.json describes them, too. Offsets and extents are in bytes, dims and
strides in elements, ranges of tasks and of bytes half-open where they are called `stop`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mkcov_action.analyses.consumption import Access, Side
from mkcov_action.analyses.dispatch import Dispatch
from mkcov_action.analyses.events import Fault
from mkcov_action.analyses.startable import CauseKind
from mkcov_action.kernel_source import Origin
from mkcov_action.task_types import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a file; `uri` is relative to the root."""

    uri: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRef:
    """An event as a task names it: `id` is the file's, in hexadecimal.

    `event` is its position and `rank` whose it is; None for the id that stands for no event. `fault`
    says why the id cannot be right. `fires` is None for an event of another rank or with a fault.
    """

    id: str
    event: int | None
    rank: int | None
    fault: Fault | None
    fires: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One layer call of the model. `call` numbers the calls of the rank by their first tasks.

    `tasks` of the ids from `first_task` to `last_task` are its own; `never_run` of these never run.
    """

    call: int
    operator: str
    task_type: str
    variant: int
    layer: int | None
    first_task: int
    last_task: int
    tasks: int
    never_run: int
    dispatch: Dispatch
    waits_for: tuple[EventRef, ...]
    triggers: tuple[EventRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredCall:
    """A call with the tensors of its slots, in their order; None is a slot that holds nullptr."""

    call: Call
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many tasks of a call trigger an event or wait for it."""

    call: Call
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that keeps tasks from running; `behind` is how many of the rank never run behind it.

    `event` is the event that starves, with what it waits for and gets, or one of a cycle. `cycle`
    are tasks: each triggers what the next waits for, the last what the first waits for. `id` is the
    event id that names no event.
    """

    kind: CauseKind
    behind: int
    event: int | None
    waits: int | None
    gets: int | None
    cycle: tuple[int, ...]
    id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorAccess:
    """What a call does to a tensor through one slot.

    `start` and `stop` are the bytes from the first to behind the last that its tiles hold, of
    `tiles` different ones; None where the size of an element is not known. `extent` says whether a
    task accesses just its tile.
    """

    call: Call
    side: Side
    slot: int
    role: str | None
    access: Access
    extent: Extent | None
    start: int | None
    stop: int | None
    tiles: int
    data_types: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """A tensor: its declaration (`origin` is None if it has none), and its accesses in the order of tasks.

    `sources` are the attached tensors that a shuffled one is copied together from.
    """

    kind: Literal["tensor"] = "tensor"
    name: str
    origin: Origin | None
    bytes: int | None
    declared: Line | None
    sources: tuple[str | None, ...]
    input_refs: int
    output_refs: int
    read: bool
    written: bool
    accesses: tuple[TensorAccess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """A slot of a task and the tile in it; `tensor` is None where it holds nullptr.

    `present` is False for a slot that the body names and the task does not have. `bytes` is the
    distance from the tile's first byte to behind its last.
    """

    side: Side
    slot: int
    role: str | None
    access: Access
    extent: Extent | None
    present: bool
    tensor: str | None
    offset: int | None
    bytes: int | None
    data_type: str | None
    dims: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataField:
    """A metadata field of a task; `read` is None where its body is not known."""

    name: str
    value: int
    read: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSide:
    """One of a task's two events, how many triggers it waits for and gets, and who is on its other side."""

    event: EventRef
    waits: int | None
    gets: int | None
    others: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A task. Task 0 ends the kernel and task 1 begins an iteration: they belong to no call.

    `waits_for` has the calls that trigger its event, `triggers` those that wait for it; None where
    it has no such event. `runs` tells whether it ever runs, `behind` what keeps it from that.
    """

    kind: Literal["task"] = "task"
    task: int
    operator: str
    task_type: str
    task_type_number: int
    variant: int
    call: Call | None
    dispatch: Dispatch
    branch: Line | None
    slots: tuple[SlotView, ...]
    metadata: tuple[MetadataField, ...]
    config: tuple[str, ...]
    waits_for: EventSide | None
    triggers: EventSide | None
    runs: bool
    behind: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """An event. The consumers that the file states are the tasks from `first_task` to before `stop_task`.

    `tagged`: puts of other ranks trigger it; `producers` then are the calls of this rank that put
    under the same position, as the ranks are alike. `never_run_behind` counts the tasks that never
    run because of this very event, `behind` is what keeps it from firing.
    """

    kind: Literal["event"] = "event"
    event: int
    event_type: str
    event_type_number: int
    waits: int
    gets: int
    tagged: bool
    ends_iteration: bool
    first_task: int
    stop_task: int
    producers: tuple[Share, ...]
    consumers: tuple[Share, ...]
    fires: bool
    never_run_behind: int
    behind: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotUseView:
    """A slot of an operator: what it is for, and what the kernel does through it."""

    side: Side
    slot: int
    role: str | None
    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorView:
    """An operator (a task type and a variant): its code, and its calls in order."""

    kind: Literal["operator"] = "operator"
    operator: str
    task_type: str
    task_type_number: int
    variant: int
    dispatch: Dispatch
    branch: Line | None
    slots: tuple[SlotUseView, ...]
    metadata: tuple[str, ...]
    config: tuple[str, ...]
    tasks: int
    never_run: int
    calls: tuple[WiredCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerView:
    """A layer: its calls in order."""

    kind: Literal["layer"] = "layer"
    layer: int
    tasks: int
    never_run: int
    calls: tuple[WiredCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCount:
    """The tasks of one type."""

    task_type: str
    task_type_number: int
    variants: int
    calls: int
    tasks: int
    never_run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCount:
    """The tasks of one layer, in all and by type; None stands for what comes before the first layer."""

    layer: int | None
    calls: int
    tasks: int
    never_run: int
    by_type: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginCount:
    """The declared tensors of one origin.

    `bytes` is the sum of the known sizes, None if none is; `dead` are those that no task names.
    """

    origin: Origin
    tensors: int
    bytes: int | None
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """The events of one type."""

    event_type: str
    event_type_number: int
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How figures spread: the smallest, the median (the upper one of two) and the largest."""

    least: int
    median: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsView:
    """The figures of a rank.

    `fan_in` is how many tasks trigger an event, `fan_out` how many wait for it, over the events
    between operators. `longest_chain` are the calls of a longest chain in which each waits, through
    an event, for the one before; None where events wait for each other.
    """

    kind: Literal["stats"] = "stats"
    tasks: int
    events: int
    first_tasks: int
    calls: int
    never_run: int
    event_types: tuple[EventCount, ...]
    task_types: tuple[TypeCount, ...]
    layers: tuple[LayerCount, ...]
    tensors: tuple[OriginCount, ...]
    fan_in: Spread | None
    fan_out: Spread | None
    too_few_triggers: int
    too_many_triggers: int
    longest_chain: tuple[Call, ...] | None
    behind: tuple[Reason, ...]


View = TensorView | TaskView | EventView | OperatorView | LayerView | StatsView


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """All that one call of `mkcov show` shows, of one rank. `world_size` is None where the kernel has none."""

    graph: str
    rank: int
    world_size: int | None
    kernel: str | None
    task_graph: str | None
    tasks: int
    events: int
    shown: tuple[View, ...]
