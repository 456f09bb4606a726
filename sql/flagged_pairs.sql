-- One row per pair and flag: why a pair should not be trusted as it stands. A clean pair has no row.
with
flags as (
    select run_id, pair_id, outcome as flag
    from audit_pairs
    where outcome <> 'correct'
    union all
    select run_id, pair_id, 'both_failed' as flag
    from audit_pairs
    where success_a = 0 and success_b = 0
    union all
    select audit_pairs.run_id, audit_pairs.pair_id, 'near_tie' as flag
    from audit_pairs
    inner join audit_runs on audit_runs.run_id = audit_pairs.run_id
    inner join gap_buckets
        on gap_buckets.bucket_set = audit_runs.bucket_set
        and gap_buckets.label = audit_pairs.gap_bucket
    where gap_buckets.is_near = 1
    union all
    select run_id, pair_id, 'llm_labelled' as flag
    from audit_pairs
    where exists (
        select 1
        from sessions
        where sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b)
            and sessions.label_source = 'llm'
    )
    union all
    select distinct audit_pairs.run_id, audit_pairs.pair_id, sessions.fault || '_fault' as flag
    from audit_pairs
    inner join sessions on sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b)
    where sessions.fault in ('simulator', 'verifier', 'gateway')
)
select
    flags.pair_id,
    flags.flag,
    flags.run_id,
    audit_pairs.gate,
    audit_pairs.source_pair_id,
    audit_pairs.task_id,
    audit_pairs.category,
    audit_pairs.gap_bucket,
    audit_pairs.reward_gap
from flags
inner join audit_pairs
    on audit_pairs.run_id = flags.run_id
    and audit_pairs.pair_id = flags.pair_id
