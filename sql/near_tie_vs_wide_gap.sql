-- One row per run, gate and kind of gap: near (is_near = 1), wide (0), unknown (NULL). An empty kind is a row.
with
gates as (
    select distinct run_id, gate
    from audit_pairs
),
counts as (
    select
        audit_pairs.run_id,
        audit_pairs.gate,
        gap_buckets.is_near,
        count(*) as pairs,
        count(*) filter (where audit_pairs.outcome not in ('unverified', 'reward_tie')) as decidable,
        count(*) filter (where audit_pairs.outcome = 'correct') as correct,
        count(*) filter (where audit_pairs.outcome = 'misselected') as misselected,
        count(*) filter (where audit_pairs.is_consistent is not null) as both_read,
        count(*) filter (where audit_pairs.is_consistent = 1) as consistent
    from audit_pairs
    inner join audit_runs on audit_runs.run_id = audit_pairs.run_id
    left join gap_buckets
        on gap_buckets.bucket_set = audit_runs.bucket_set
        and gap_buckets.label = audit_pairs.gap_bucket
    group by audit_pairs.run_id, audit_pairs.gate, gap_buckets.is_near
    union all
    select distinct gates.run_id, gates.gate, kinds.is_near, 0, 0, 0, 0, 0, 0
    from gates
    inner join audit_runs on audit_runs.run_id = gates.run_id
    inner join gap_buckets as kinds on kinds.bucket_set = audit_runs.bucket_set
    where not exists (
        select 1
        from audit_pairs
        left join gap_buckets
            on gap_buckets.bucket_set = audit_runs.bucket_set
            and gap_buckets.label = audit_pairs.gap_bucket
        where audit_pairs.run_id = gates.run_id
            and audit_pairs.gate = gates.gate
            and coalesce(gap_buckets.is_near, -1) = coalesce(kinds.is_near, -1)
    )
)
select
    run_id,
    gate,
    case is_near when 1 then 'near' when 0 then 'wide' else 'unknown' end as gap_kind,
    is_near,
    pairs,
    decidable,
    correct,
    misselected,
    decidable - correct - misselected as undecided,
    both_read,
    consistent,
    cast(misselected as double precision) / nullif(decidable, 0) as misselected_of_decidable,
    cast(misselected as double precision) / nullif(misselected + correct, 0) as misselected_of_decided,
    cast(consistent as double precision) / nullif(both_read, 0) as consistent_rate
from counts
