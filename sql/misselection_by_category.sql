-- One row per run, gate and category. Pairs without a category have category NULL.
with
counts as (
    select
        run_id,
        gate,
        category,
        count(*) as pairs,
        count(*) filter (where outcome not in ('unverified', 'reward_tie')) as decidable,
        count(*) filter (where outcome = 'correct') as correct,
        count(*) filter (where outcome = 'misselected') as misselected,
        count(*) filter (where outcome = 'judge_tie') as judge_tie,
        count(*) filter (where outcome = 'inconsistent') as inconsistent,
        count(*) filter (where outcome = 'unreadable') as unreadable,
        count(*) filter (where outcome = 'incomplete') as incomplete,
        count(*) filter (where outcome = 'reward_tie') as reward_tie,
        count(*) filter (where outcome = 'unverified') as unverified,
        count(*) filter (where is_consistent is not null) as both_read,
        count(*) filter (where is_consistent = 1) as consistent
    from audit_pairs
    group by run_id, gate, category
)
select
    run_id,
    gate,
    category,
    pairs,
    decidable,
    correct,
    misselected,
    judge_tie,
    inconsistent,
    unreadable,
    incomplete,
    reward_tie,
    unverified,
    both_read,
    consistent,
    cast(correct as double precision) / nullif(decidable, 0) as accuracy,
    cast(misselected as double precision) / nullif(decidable, 0) as misselected_of_decidable,
    cast(misselected as double precision) / nullif(misselected + correct, 0) as misselected_of_decided,
    cast(consistent as double precision) / nullif(both_read, 0) as consistent_rate
from counts
