-- One row per pair and flag: why a pair should not be trusted as it stands. A clean pair has no row.
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
said_successes as (
    -- what most people say of a session
    select
        human_labels.session_id,
        case
            when 2 * count(*) filter (where lower(human_labels.value) in ('1', 'true', 'yes')) > count(*) then 1
            when 2 * count(*) filter (where lower(human_labels.value) in ('1', 'true', 'yes')) < count(*) then 0
        end as success
    from last_labels
    inner join human_labels on human_labels.label_id = last_labels.label_id
    where last_labels.nth = 1
        and human_labels.kind = 'success'
        and lower(human_labels.value) not in ('cannot tell', 'withdrawn')
    group by human_labels.session_id
),
failed_sessions as (
    -- people outrank external and model labels, and a rule outranks them
    select said_successes.session_id
    from said_successes
    inner join sessions on sessions.session_id = said_successes.session_id
    where said_successes.success = 0
        and (coalesce(sessions.label_source, '') <> 'rule' or sessions.success is null)
),
succeeded_sessions as (
    select said_successes.session_id
    from said_successes
    inner join sessions on sessions.session_id = said_successes.session_id
    where said_successes.success = 1
        and (coalesce(sessions.label_source, '') <> 'rule' or sessions.success is null)
),
denied_pairs as (
    -- someone prefers another side than the verifier's, or than the judge's where no verifier tells them apart
    select audit_pairs.pair_id
    from last_labels
    inner join human_labels on human_labels.label_id = last_labels.label_id
    inner join audit_pairs on audit_pairs.pair_id = human_labels.pair_id
    where last_labels.nth = 1
        and human_labels.kind = 'preference'
        and lower(human_labels.value) not in ('cannot tell', 'withdrawn')
        and lower(human_labels.value) <> lower(
            case
                when audit_pairs.reward_a - audit_pairs.reward_b > 1e-9 then 'A'
                when audit_pairs.reward_b - audit_pairs.reward_a > 1e-9 then 'B'
                else audit_pairs.judge_pref
            end
        )
),
denied_sessions as (
    -- someone says failed where the verifier says succeeded, or the other way round
    select sessions.session_id
    from last_labels
    inner join human_labels on human_labels.label_id = last_labels.label_id
    inner join sessions on sessions.session_id = human_labels.session_id
    where last_labels.nth = 1
        and human_labels.kind = 'success'
        and lower(human_labels.value) not in ('cannot tell', 'withdrawn')
        and case when lower(human_labels.value) in ('1', 'true', 'yes') then 1 else 0 end <> sessions.success
),
flags as (
    select run_id, pair_id, outcome as flag
    from audit_pairs
    where outcome <> 'correct'
    union all
    select run_id, pair_id, 'both_failed' as flag
    from audit_pairs
    where (success_a = 0 or session_a in (select failed_sessions.session_id from failed_sessions))
        and (success_b = 0 or session_b in (select failed_sessions.session_id from failed_sessions))
        and coalesce(session_a, '') not in (select succeeded_sessions.session_id from succeeded_sessions)
        and coalesce(session_b, '') not in (select succeeded_sessions.session_id from succeeded_sessions)
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
    union all
    select run_id, pair_id, 'human_disagrees' as flag
    from audit_pairs
    where pair_id in (select denied_pairs.pair_id from denied_pairs)
        or session_a in (select denied_sessions.session_id from denied_sessions)
        or session_b in (select denied_sessions.session_id from denied_sessions)
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
