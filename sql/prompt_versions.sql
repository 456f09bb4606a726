-- One row per run, role and prompt: which wording was sent, how often, and from when to when.
-- A prompt whose wording was not kept (an imported call names its hash alone) has NULL name, version and text.
with
counts as (
    select
        run_id,
        role,
        prompt_hash,
        count(*) as calls,
        min(created_at) as first_at,
        max(created_at) as last_at
    from judge_logs
    where prompt_hash is not null
    group by run_id, role, prompt_hash
)
select
    counts.run_id,
    counts.role,
    counts.prompt_hash,
    prompts.name,
    prompts.version,
    counts.calls,
    counts.first_at,
    counts.last_at,
    prompts.text
from counts
left join prompts on prompts.prompt_hash = counts.prompt_hash
