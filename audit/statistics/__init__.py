"""Statistics: pure functions of counts per cluster; they know nothing of judges, files or databases.

What they take is small: one number a task (or agent pair), however many pairs a run has. scipy and numpy
are loaded when a function is called, so that `--help` need not wait. Wrong arguments raise ValueError. An
interval is always of 95%; where none can be told it is NULL, not narrow. Which function gives which key of
`report --json`:

    rates, near_vs_wide, gap_buckets, categories, judges
                        rates.clustered_pair_rates, rows over tasks, which groups.Groups adds up; any one
                        RATE: rates.clustered_rate
    near_minus_wide     intervals.change_interval; beside what is not beyond chance power.smallest_seen
    rates.error_calls   rates.clustered_rate, calls over tasks (a call without a pair is its own cluster)
    agents              mean_reward, se: agents.paired_se of the rewards alone; intervals.mean_interval;
                        pass_hat_k: passk.pass_hat_ks
    agent_pairs         agents.agent_pair for each, then agents.summary
    error_curve         curve.error_curve_of_agents over agent pairs, curve.error_curve over session pairs
    position            position.position
    satisfaction        satisfaction.satisfied_but_failed
    (compare)           intervals.paired_interval; agreement.mcnemar_p of pairs misselected in one run only
    (plan)              power.*, with intervals.design_effect of the run; also beside a null result
    (review)            corrected.corrected, of rogan_gladen.rogan_gladen_of and corrected.ppi_mean;
                        agreement.kappa
    (export dpo)        noise.label_smoothing, noise.data_cost

RATE["method"] is one of
    wilson              every cluster holds one trial: Wilson's score interval
    cluster_wilson_t    trials cluster: Wilson's for as many trials as they are worth; for rare events too
    wilson_on_clusters  all or nothing was counted, or there is one cluster: a cluster is worth one trial
    bootstrap_of_agents agent pairs: whole agents, or families of agents, drawn anew, seeded
    wilson_on_agents    agent pairs, where no resample would differ: half as many trials as agents
RATE["clusters"] under intervals.FEW_CLUSTERS calls for a warning.
"""
