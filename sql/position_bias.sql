-- One row per run, gate and gap bucket, and one with gap_bucket 'all' over them. No row under first_order.
-- An empty bucket is a row with pairs = 0 and NULL rates.
-- primacy: both orders name what stood first, or one does and the other says tie. recency is the same for second.
-- preference_fairness = (recency - primacy) / both_read (arXiv:2406.07791), 0 is fair, below 0 favours the first.
-- first_share = first_named / side_named, over all answers that name a side.
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
        count(*) filter (where pref_ab is not null and pref_ba is not null) as both_read,
        count(*) filter (where pref_ab = pref_ba) as consistent,
        count(*) filter (where
            (pref_ab = 'A' and pref_ba in ('B', 'tie')) or (pref_ab = 'tie' and pref_ba = 'B')
        ) as primacy,
        count(*) filter (where
            (pref_ab = 'B' and pref_ba in ('A', 'tie')) or (pref_ab = 'tie' and pref_ba = 'A')
        ) as recency,
        count(*) filter (where pref_ab = 'A') + count(*) filter (where pref_ba = 'B') as first_named,
        count(*) filter (where pref_ab in ('A', 'B')) + count(*) filter (where pref_ba in ('A', 'B')) as side_named
    from audit_pairs
    group by run_id, gate, gap_bucket
    union all
    select
        run_id,
        gate,
        'all' as gap_bucket,
        count(*) as pairs,
        count(*) filter (where pref_ab is not null and pref_ba is not null) as both_read,
        count(*) filter (where pref_ab = pref_ba) as consistent,
        count(*) filter (where
            (pref_ab = 'A' and pref_ba in ('B', 'tie')) or (pref_ab = 'tie' and pref_ba = 'B')
        ) as primacy,
        count(*) filter (where
            (pref_ab = 'B' and pref_ba in ('A', 'tie')) or (pref_ab = 'tie' and pref_ba = 'A')
        ) as recency,
        count(*) filter (where pref_ab = 'A') + count(*) filter (where pref_ba = 'B') as first_named,
        count(*) filter (where pref_ab in ('A', 'B')) + count(*) filter (where pref_ba in ('A', 'B')) as side_named
    from audit_pairs
    group by run_id, gate
    union all
    select gates.run_id, gates.gate, gap_buckets.label, 0, 0, 0, 0, 0, 0, 0
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
    gap_bucket,
    pairs,
    both_read,
    consistent,
    primacy,
    recency,
    first_named,
    side_named,
    cast(consistent as double precision) / nullif(both_read, 0) as consistent_rate,
    cast(recency - primacy as double precision) / nullif(both_read, 0) as preference_fairness,
    cast(first_named as double precision) / nullif(side_named, 0) as first_share
from counts
inner join audit_runs on audit_runs.run_id = counts.run_id
where audit_runs.swap_rule <> 'first_order'
