-- One row per run, gate and gap bucket. An empty bucket is a row with pairs = 0 and NULL rates.
-- Rates name their denominator: all decidable pairs, or those with a verdict for a side (decided).
-- One group by over the table itself, in index order: SQLite then hands a restriction to one run down to it.
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
counts as (
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
        and not exists (
            select 1
            from audit_pairs
            where audit_pairs.run_id = gates.run_id
                and audit_pairs.gate = gates.gate
                and audit_pairs.gap_bucket = gap_buckets.label
        )
)
select
    counts.run_id,
    counts.gate,
    counts.gap_bucket,
    gap_buckets.lower,
    gap_buckets.upper,
    gap_buckets.is_near,
    counts.pairs,
    counts.decidable,
    counts.correct,
    counts.misselected,
    counts.decidable - counts.correct - counts.misselected as undecided,
    counts.both_read,
    counts.consistent,
    cast(counts.misselected as double precision) / nullif(counts.decidable, 0) as misselected_of_decidable,
    cast(counts.misselected as double precision)
        / nullif(counts.misselected + counts.correct, 0) as misselected_of_decided,
    cast(counts.consistent as double precision) / nullif(counts.both_read, 0) as consistent_rate
from counts
inner join audit_runs on audit_runs.run_id = counts.run_id
left join gap_buckets
    on gap_buckets.bucket_set = audit_runs.bucket_set
    and gap_buckets.label = counts.gap_bucket
order by counts.run_id, counts.gate, gap_buckets.lower is null, gap_buckets.lower
