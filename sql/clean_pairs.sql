-- One row per pair that no flag of `flagged_pairs` stands against, but for `near_tie`, which is only told.
-- They are what `export dpo` takes by default, before it reads their texts: then it also drops the pairs of
-- which no row can be made (no_transcript, identical, no_shared_prompt), and such flags are in no view, nor
-- is injection_suspected, which is only told.
-- The conditions are those of `flagged_pairs` said again, for a correct pair: through that view SQLite would
-- read the pairs of all runs to find those of one.
with
last_labels as (
    -- an annotator's newest word counts, and says nothing where they cannot tell
    select
        label_id,
        row_number() over (
            partition by annotator, kind, pair_id, session_id
            order by created_at desc, label_id desc
        ) as nth
    from human_labels
),
failed_sessions as (
    -- most people say so. Where a rule says otherwise they are denied_sessions as well
    select human_labels.session_id
    from last_labels
    inner join human_labels on human_labels.label_id = last_labels.label_id
    where last_labels.nth = 1
        and human_labels.kind = 'success'
        and lower(human_labels.value) not in ('cannot tell', 'withdrawn')
    group by human_labels.session_id
    having 2 * count(*) filter (where lower(human_labels.value) in ('1', 'true', 'yes')) < count(*)
),
denied_pairs as (
    -- of a correct pair the judge's side is the verifier's too
    select audit_pairs.pair_id
    from last_labels
    inner join human_labels on human_labels.label_id = last_labels.label_id
    inner join audit_pairs on audit_pairs.pair_id = human_labels.pair_id
    where last_labels.nth = 1
        and human_labels.kind = 'preference'
        and lower(human_labels.value) not in ('cannot tell', 'withdrawn')
        and lower(human_labels.value) <> lower(audit_pairs.judge_pref)
),
denied_sessions as (
    select sessions.session_id
    from last_labels
    inner join human_labels on human_labels.label_id = last_labels.label_id
    inner join sessions on sessions.session_id = human_labels.session_id
    where last_labels.nth = 1
        and human_labels.kind = 'success'
        and lower(human_labels.value) not in ('cannot tell', 'withdrawn')
        and case when lower(human_labels.value) in ('1', 'true', 'yes') then 1 else 0 end <> sessions.success
)
select
    pair_id,
    run_id,
    gate,
    source_pair_id,
    task_id,
    category,
    trial,
    agent_a,
    agent_b,
    session_a,
    session_b,
    success_a,
    success_b,
    reward_a,
    reward_b,
    judge_pref,
    case judge_pref when 'A' then session_a else session_b end as chosen_session,
    case judge_pref when 'A' then session_b else session_a end as rejected_session,
    reward_gap,
    gap_bucket
from audit_pairs
where outcome = 'correct'
    and (
        (success_a = 0 or session_a in (select failed_sessions.session_id from failed_sessions))
        and (success_b = 0 or session_b in (select failed_sessions.session_id from failed_sessions))
    ) is not true
    and not exists (
        select 1
        from sessions
        where sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b)
            and (sessions.label_source = 'llm' or sessions.fault in ('simulator', 'verifier', 'gateway'))
    )
    -- `is not true`, for with a session that is NULL `in` is unknown
    and (pair_id in (select denied_pairs.pair_id from denied_pairs)) is not true
    and (session_a in (select denied_sessions.session_id from denied_sessions)) is not true
    and (session_b in (select denied_sessions.session_id from denied_sessions)) is not true
