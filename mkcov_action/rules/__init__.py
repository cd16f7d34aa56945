"""The catalogue. Adding a rule is its module, one line here, and its fixtures."""

from __future__ import annotations

from mkcov_action.rules._context import prepared
from mkcov_action.rules._rule import Context, Rule, Stage
from mkcov_action.rules.asymmetric_buffer import asymmetric_buffer
from mkcov_action.rules.cross_rank_race import cross_rank_race
from mkcov_action.rules.data_race import data_race
from mkcov_action.rules.dead_scratch import dead_scratch
from mkcov_action.rules.dependency_cycle import dependency_cycle
from mkcov_action.rules.edge_blind_operator import edge_blind_operator
from mkcov_action.rules.identical_tasks import identical_tasks
from mkcov_action.rules.ignored_slot import ignored_slot
from mkcov_action.rules.incomplete_shuffle import incomplete_shuffle
from mkcov_action.rules.inconsistent_metadata import inconsistent_metadata
from mkcov_action.rules.inconsistent_type import inconsistent_type
from mkcov_action.rules.invalid_event import invalid_event
from mkcov_action.rules.malformed_json import malformed_json
from mkcov_action.rules.malformed_skeleton import malformed_skeleton
from mkcov_action.rules.misaligned_access import misaligned_access
from mkcov_action.rules.mislabelled_rank import mislabelled_rank
from mkcov_action.rules.missing_artifact import missing_artifact
from mkcov_action.rules.missing_dispatch import missing_dispatch
from mkcov_action.rules.missing_wiring import missing_wiring
from mkcov_action.rules.multiplied_residual import multiplied_residual
from mkcov_action.rules.null_slot import null_slot
from mkcov_action.rules.out_of_bounds import out_of_bounds
from mkcov_action.rules.partial_wiring import partial_wiring
from mkcov_action.rules.position_blind_attention import position_blind_attention
from mkcov_action.rules.producer_after_consumer import producer_after_consumer
from mkcov_action.rules.rank_divergence import rank_divergence
from mkcov_action.rules.remote_trigger_mismatch import remote_trigger_mismatch
from mkcov_action.rules.schema_violation import schema_violation
from mkcov_action.rules.slot_out_of_range import slot_out_of_range
from mkcov_action.rules.trigger_count_mismatch import trigger_count_mismatch
from mkcov_action.rules.unaudited_ranks import unaudited_ranks
from mkcov_action.rules.unawaited_task import unawaited_task
from mkcov_action.rules.unconsumed_tensor import unconsumed_tensor
from mkcov_action.rules.uncovered_bytes import uncovered_bytes
from mkcov_action.rules.undeclared_tensor import undeclared_tensor
from mkcov_action.rules.uninitialised_read import uninitialised_read
from mkcov_action.rules.unknown_key import unknown_key
from mkcov_action.rules.unordered_read import unordered_read
from mkcov_action.rules.unordered_team import unordered_team
from mkcov_action.rules.unreachable_task import unreachable_task
from mkcov_action.rules.unreadable_artifact import unreadable_artifact
from mkcov_action.rules.unrecognised_kernel import unrecognised_kernel
from mkcov_action.rules.unreduced_partial import unreduced_partial
from mkcov_action.rules.unused_variant import unused_variant
from mkcov_action.rules.vacuous_critical import vacuous_critical
from mkcov_action.rules.write_only_tensor import write_only_tensor

RULES: tuple[Rule, ...] = (
    missing_artifact,
    unaudited_ranks,
    malformed_json,
    schema_violation,
    unrecognised_kernel,
    unknown_key,
    unreadable_artifact,
    mislabelled_rank,
    missing_wiring,
    unconsumed_tensor,
    uninitialised_read,
    undeclared_tensor,
    ignored_slot,
    null_slot,
    position_blind_attention,
    partial_wiring,
    write_only_tensor,
    dead_scratch,
    vacuous_critical,
    incomplete_shuffle,
    missing_dispatch,
    slot_out_of_range,
    unused_variant,
    inconsistent_metadata,
    identical_tasks,
    invalid_event,
    trigger_count_mismatch,
    dependency_cycle,
    unreachable_task,
    producer_after_consumer,
    unawaited_task,
    malformed_skeleton,
    edge_blind_operator,
    out_of_bounds,
    unordered_read,
    data_race,
    uncovered_bytes,
    inconsistent_type,
    misaligned_access,
    rank_divergence,
    remote_trigger_mismatch,
    asymmetric_buffer,
    cross_rank_race,
    unordered_team,
    unreduced_partial,
    multiplied_residual,
)

__all__ = ["RULES", "Context", "Rule", "Stage", "prepared"]
