-- One row per run, role, profile and model: its calls, and the tokens of those whose tokens are known.
-- Sums are NULL where nothing is known, never 0. calls_unknown: calls without a total.
select
    run_id,
    role,
    profile,
    model,
    count(*) as calls,
    count(*) filter (where parse_status = 'error') as calls_failed,
    count(*) filter (where total_tokens is null) as calls_unknown,
    cast(sum(prompt_tokens) as bigint) as prompt_tokens,
    cast(sum(completion_tokens) as bigint) as completion_tokens,
    cast(sum(reasoning_tokens) as bigint) as reasoning_tokens,
    cast(sum(total_tokens) as bigint) as total_tokens,
    avg(latency_ms) as mean_latency_ms
from judge_logs
group by run_id, role, profile, model
