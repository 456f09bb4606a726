-- One row per run and satisfaction cut: how many of the sessions at or above the cut failed all the same.
-- Counted are sessions with both a satisfaction and a verified success. A cut without such a session has NULL rates.
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
counts as (
    select
        sessions.run_id,
        cuts.cut,
        count(*) as sessions,
        count(*) filter (where sessions.success = 0) as failed,
        count(*) filter (where sessions.satisfaction >= cuts.cut - 1e-9) as satisfied,
        count(*) filter (
            where sessions.satisfaction >= cuts.cut - 1e-9 and sessions.success = 0
        ) as satisfied_failed
    from sessions
    cross join cuts
    where sessions.satisfaction is not null
        and sessions.success is not null
    group by sessions.run_id, cuts.cut
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
