-- One row per run, gate and kind of gap: near (is_near = 1), wide (0), unknown (NULL). An empty kind is a row.
with recursive
gates as (
    -- a step of the index for each gate of a run: `distinct` would read all of its pairs
    select
        run_id,
        (select min(gate) from audit_pairs where audit_pairs.run_id = audit_runs.run_id) as gate
    from audit_runs
    union all
    select
        gates.run_id,
        (
            select min(audit_pairs.gate)
            from audit_pairs
            where audit_pairs.run_id = gates.run_id
                and audit_pairs.gate > gates.gate
        ) as gate
    from gates
    where gates.gate is not null
),
buckets as (
    -- grouped by the bucket's own name first, so that only groups have to look for its kind
    select
        run_id,
        gate,
        gap_bucket,
        count(*) as pairs,
        count(*) filter (where outcome not in ('unverified', 'reward_tie')) as decidable,
        count(*) filter (where outcome = 'correct') as correct,
        count(*) filter (where outcome = 'misselected') as misselected,
        count(*) filter (where is_consistent is not null) as both_read,
        count(*) filter (where is_consistent = 1) as consistent
    from audit_pairs
    group by run_id, gate, gap_bucket
    union all
    select gates.run_id, gates.gate, gap_buckets.label, 0, 0, 0, 0, 0, 0
    from gates
    inner join audit_runs on audit_runs.run_id = gates.run_id
    inner join gap_buckets on gap_buckets.bucket_set = audit_runs.bucket_set
    where gates.gate is not null
),
counts as (
    -- not grouped again: SQLite hands a restriction to one run down through one group by alone
    select distinct
        buckets.run_id,
        buckets.gate,
        gap_buckets.is_near,
        cast(sum(buckets.pairs) over kind as bigint) as pairs,
        cast(sum(buckets.decidable) over kind as bigint) as decidable,
        cast(sum(buckets.correct) over kind as bigint) as correct,
        cast(sum(buckets.misselected) over kind as bigint) as misselected,
        cast(sum(buckets.both_read) over kind as bigint) as both_read,
        cast(sum(buckets.consistent) over kind as bigint) as consistent
    from buckets
    inner join audit_runs on audit_runs.run_id = buckets.run_id
    left join gap_buckets
        on gap_buckets.bucket_set = audit_runs.bucket_set
        and gap_buckets.label = buckets.gap_bucket
    window kind as (partition by buckets.run_id, buckets.gate, gap_buckets.is_near)
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
