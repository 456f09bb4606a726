-- One row per pair whose two transcripts are stored: why people should look at it, and whether they have.
-- reason is the first that applies, and stays what it was once the pair is exported. The pairs of a reason are a
-- stratum: `review export` picks from each at random. A session counts as satisfied from 0.8 on.
select
    audit_pairs.pair_id,
    audit_pairs.run_id,
    audit_pairs.gate,
    audit_pairs.task_id,
    audit_pairs.category,
    audit_pairs.gap_bucket,
    coalesce(
        review_items.reason,
        case
            when exists (
                select 1
                from sessions
                where sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b)
                    and sessions.satisfaction >= 0.8 - 1e-9
                    and sessions.success = 0
            ) then 'satisfied_failed'
            when audit_pairs.outcome = 'inconsistent' then 'inconsistent'
            when exists (
                -- members of a panel that were shown the same order and prefer different sides
                select judge_logs.presented_order
                from judge_logs
                where judge_logs.pair_id = audit_pairs.pair_id
                    and judge_logs.role = 'judge'
                group by judge_logs.presented_order
                having count(distinct judge_logs.preference) > 1
                    and count(distinct judge_logs.profile) > 1
            ) then 'panel_disagrees'
            when gap_buckets.is_near = 1 then 'near_tie'
            when exists (
                select 1
                from sessions
                where sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b)
                    and sessions.label_source = 'llm'
            ) then 'llm_labelled'
            else 'random'
        end
    ) as reason,
    review_items.review_id,
    review_items.created_at as exported_at,
    (
        -- those whose newest word is not that they take it back
        select count(*)
        from human_labels
        where human_labels.pair_id = audit_pairs.pair_id
            and human_labels.value <> 'withdrawn'
            and not exists (
                select 1
                from human_labels as newer
                where newer.pair_id = human_labels.pair_id
                    and newer.annotator = human_labels.annotator
                    and (newer.created_at, newer.label_id) > (human_labels.created_at, human_labels.label_id)
            )
    ) as annotators
from audit_pairs
inner join audit_runs on audit_runs.run_id = audit_pairs.run_id
left join gap_buckets
    on gap_buckets.bucket_set = audit_runs.bucket_set
    and gap_buckets.label = audit_pairs.gap_bucket
left join review_items on review_items.pair_id = audit_pairs.pair_id
where (
    select count(*)
    from sessions
    where sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b)
        and sessions.transcript_json is not null
) = 2
