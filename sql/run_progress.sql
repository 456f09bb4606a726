-- One row per run: how far each stage has come.
select
    audit_runs.run_id,
    audit_runs.name,
    audit_runs.kind,
    audit_runs.status,
    (select count(*) from sessions where sessions.run_id = audit_runs.run_id) as sessions,
    (select count(verified_at) from sessions where sessions.run_id = audit_runs.run_id) as sessions_verified,
    (select count(*) from audit_pairs where audit_pairs.run_id = audit_runs.run_id) as pairs,
    (select count(judged_at) from audit_pairs where audit_pairs.run_id = audit_runs.run_id) as pairs_judged,
    (select count(scored_at) from audit_pairs where audit_pairs.run_id = audit_runs.run_id) as pairs_scored,
    (select count(*) from judge_logs where judge_logs.run_id = audit_runs.run_id) as calls,
    (
        select count(*)
        from judge_logs
        where judge_logs.run_id = audit_runs.run_id
            and judge_logs.parse_status = 'error'
    ) as calls_failed,
    audit_runs.created_at,
    audit_runs.finished_at
from audit_runs
