-- One row per run and satisfaction cut: how many of the sessions at or above the cut failed all the same.
-- Counted are sessions with both a satisfaction and a success: by rule, else what most people say, else as given.
-- A cut without such a session has NULL rates.
-- relative_risk = P(failed, satisfied) / P(failed, not satisfied). j = P(satisfied, success) - P(satisfied, failed).
with
cuts as (
    select cast(0.5 as double precision) as cut
    union all
    select cast(0.6 as double precision)
    union all
    select cast(0.7 as double precision)
    union all
    select cast(0.8 as double precision)
    union all
    select cast(0.9 as double precision)
    union all
    select cast(1 as double precision)
),
last_labels as (
    -- an annotator's newest word counts
    select
        session_id,
        lower(value) as value,
        row_number() over (partition by annotator, session_id order by created_at desc, label_id desc) as nth
    from human_labels
    where kind = 'success'
),
said as (
    select
        session_id,
        case
            when 2 * count(*) filter (where value in ('1', 'true', 'yes')) > count(*) then 1
            when 2 * count(*) filter (where value in ('1', 'true', 'yes')) < count(*) then 0
        end as success
    from last_labels
    where nth = 1
        and value not in ('cannot tell', 'withdrawn')
    group by session_id
),
known as (
    select
        sessions.run_id,
        sessions.satisfaction,
        case
            when sessions.label_source = 'rule' then coalesce(sessions.success, said.success)
            else coalesce(said.success, sessions.success)
        end as success
    from sessions
    left join said on said.session_id = sessions.session_id
    where sessions.satisfaction is not null
),
counts as (
    select
        known.run_id,
        cuts.cut,
        count(*) as sessions,
        count(*) filter (where known.success = 0) as failed,
        count(*) filter (where known.satisfaction >= cuts.cut - 1e-9) as satisfied,
        count(*) filter (where known.satisfaction >= cuts.cut - 1e-9 and known.success = 0) as satisfied_failed
    from known
    cross join cuts
    where known.success is not null
    group by known.run_id, cuts.cut
)
select
    run_id,
    cut,
    sessions,
    failed,
    satisfied,
    satisfied_failed,
    cast(satisfied_failed as double precision) / nullif(satisfied, 0) as satisfied_failed_rate,
    cast(failed as double precision) / nullif(sessions, 0) as base_failure_rate,
    cast(satisfied_failed as double precision) / nullif(satisfied, 0)
        / nullif(cast(failed - satisfied_failed as double precision) / nullif(sessions - satisfied, 0), 0)
        as relative_risk,
    cast(satisfied - satisfied_failed as double precision) / nullif(sessions - failed, 0)
        - cast(satisfied_failed as double precision) / nullif(failed, 0) as j
from counts
