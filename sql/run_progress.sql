-- One row per run: how far each stage has come.
-- Each table is read once, joined to all runs, so that a restriction to one run is handed down to it.
with
session_counts as (
    select
        audit_runs.run_id,
        count(sessions.session_id) as sessions,
        count(sessions.verified_at) as verified
    from audit_runs
    left join sessions on sessions.run_id = audit_runs.run_id
    group by audit_runs.run_id
),
pair_counts as (
    select
        audit_runs.run_id,
        count(audit_pairs.pair_id) as pairs,
        count(audit_pairs.judged_at) as judged,
        count(audit_pairs.scored_at) as scored
    from audit_runs
    left join audit_pairs on audit_pairs.run_id = audit_runs.run_id
    group by audit_runs.run_id
),
call_counts as (
    select
        audit_runs.run_id,
        count(judge_logs.parse_status) as calls,
        count(*) filter (where judge_logs.parse_status = 'error') as failed
    from audit_runs
    left join judge_logs on judge_logs.run_id = audit_runs.run_id
    group by audit_runs.run_id
)
select
    audit_runs.run_id,
    audit_runs.name,
    audit_runs.kind,
    audit_runs.status,
    session_counts.sessions,
    session_counts.verified as sessions_verified,
    pair_counts.pairs,
    pair_counts.judged as pairs_judged,
    pair_counts.scored as pairs_scored,
    call_counts.calls,
    call_counts.failed as calls_failed,
    audit_runs.created_at,
    audit_runs.finished_at
from audit_runs
inner join session_counts on session_counts.run_id = audit_runs.run_id
inner join pair_counts on pair_counts.run_id = audit_runs.run_id
inner join call_counts on call_counts.run_id = audit_runs.run_id
