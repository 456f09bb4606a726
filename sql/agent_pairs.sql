-- One row per run, gate and two agents that met: whom the judge picks over all tasks, and whom the rewards do.
-- agent_a comes before agent_b by its bytes, whichever side each stood on. Means are over pairs of which both
-- rewards are known.
-- pick: sign of wins_a - wins_b, NULL without a verdict. misselected: the pick has the lower mean reward.
-- misselected is NULL without a pick and where the means are equal (to 1e-9). A tied pick is no error.
with
sides as (
    select
        run_id,
        gate,
        task_id,
        case when agent_a collate "binary" < agent_b then agent_a else agent_b end as agent_a,
        case when agent_a collate "binary" < agent_b then agent_b else agent_a end as agent_b,
        case when agent_a collate "binary" < agent_b then reward_a else reward_b end as reward_a,
        case when agent_a collate "binary" < agent_b then reward_b else reward_a end as reward_b,
        case
            when judge_pref = 'tie' then 'tie'
            when judge_pref = 'A' then case when agent_a collate "binary" < agent_b then 'A' else 'B' end
            when judge_pref = 'B' then case when agent_a collate "binary" < agent_b then 'B' else 'A' end
        end as preference
    from audit_pairs
    where agent_a <> agent_b
),
counts as (
    select
        run_id,
        gate,
        agent_a,
        agent_b,
        count(*) as pairs,
        count(distinct task_id) as tasks,
        count(reward_a + reward_b) as pairs_rewarded,
        avg(case when reward_b is not null then reward_a end) as mean_reward_a,
        avg(case when reward_a is not null then reward_b end) as mean_reward_b,
        count(preference) as verdicts,
        count(*) filter (where preference = 'A') as wins_a,
        count(*) filter (where preference = 'B') as wins_b
    from sides
    group by run_id, gate, agent_a, agent_b
)
select
    run_id,
    gate,
    agent_a,
    agent_b,
    pairs,
    tasks,
    pairs_rewarded,
    mean_reward_a,
    mean_reward_b,
    abs(mean_reward_a - mean_reward_b) as reward_gap,
    verdicts,
    wins_a,
    wins_b,
    case
        when verdicts = 0 then null
        when wins_a > wins_b then 'A'
        when wins_b > wins_a then 'B'
        else 'tie'
    end as pick,
    case
        when verdicts = 0 or abs(mean_reward_a - mean_reward_b) <= 1e-9 then null
        when mean_reward_a < mean_reward_b and wins_a > wins_b then 1
        when mean_reward_a > mean_reward_b and wins_a < wins_b then 1
        when mean_reward_a is not null then 0
    end as misselected
from counts
