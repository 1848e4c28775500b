-- All statements of the store. Written by: go test . -run Golden -update

-- name: experiments.chunk
SELECT experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
       observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status
FROM experiments
WHERE project_id = $1 AND (created_at, experiment_id) < ($2, $3) AND (created_at, experiment_id) >= ($4, $5)
ORDER BY created_at DESC, experiment_id DESC LIMIT $6

-- name: experiments.last
SELECT created_at, experiment_id
FROM experiments
WHERE project_id = $1 AND (created_at, experiment_id) < ($2, $3) AND (created_at, experiment_id) >= ($4, $5)
ORDER BY created_at, experiment_id LIMIT 1

-- name: experiments.nth
SELECT created_at, experiment_id
FROM experiments
WHERE project_id = $1 AND (created_at, experiment_id) < ($2, $3) AND (created_at, experiment_id) >= ($4, $5)
ORDER BY created_at DESC, experiment_id DESC OFFSET $6 LIMIT 2

-- name: experimentsChanged.chunk
SELECT experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
       observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status
FROM experiments
WHERE project_id = $1 AND changed > $2 AND ($3::text = '' OR status = $3) AND (created_at, experiment_id) < ($4, $5) AND (created_at, experiment_id) >= ($6, $7)
ORDER BY created_at DESC, experiment_id DESC LIMIT $8

-- name: experimentsChanged.last
SELECT created_at, experiment_id
FROM experiments
WHERE project_id = $1 AND changed > $2 AND ($3::text = '' OR status = $3) AND (created_at, experiment_id) < ($4, $5) AND (created_at, experiment_id) >= ($6, $7)
ORDER BY created_at, experiment_id LIMIT 1

-- name: experimentsChanged.nth
SELECT created_at, experiment_id
FROM experiments
WHERE project_id = $1 AND changed > $2 AND ($3::text = '' OR status = $3) AND (created_at, experiment_id) < ($4, $5) AND (created_at, experiment_id) >= ($6, $7)
ORDER BY created_at DESC, experiment_id DESC OFFSET $8 LIMIT 2

-- name: experimentsOfStatus.chunk
SELECT experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
       observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status
FROM experiments
WHERE project_id = $1 AND status = $2 AND (created_at, experiment_id) < ($3, $4) AND (created_at, experiment_id) >= ($5, $6)
ORDER BY created_at DESC, experiment_id DESC LIMIT $7

-- name: experimentsOfStatus.last
SELECT created_at, experiment_id
FROM experiments
WHERE project_id = $1 AND status = $2 AND (created_at, experiment_id) < ($3, $4) AND (created_at, experiment_id) >= ($5, $6)
ORDER BY created_at, experiment_id LIMIT 1

-- name: experimentsOfStatus.nth
SELECT created_at, experiment_id
FROM experiments
WHERE project_id = $1 AND status = $2 AND (created_at, experiment_id) < ($3, $4) AND (created_at, experiment_id) >= ($5, $6)
ORDER BY created_at DESC, experiment_id DESC OFFSET $7 LIMIT 2

-- name: getExperiment
SELECT experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
       observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status
FROM experiments
WHERE project_id = $1 AND experiment_id = $2

-- name: knownExperiments
SELECT count(*)
FROM experiments
WHERE project_id = $1 AND experiment_id = ANY($2::text[])

-- name: numbers.add
INSERT INTO experiment_changes (project_id, number) VALUES ($1, $2) ON CONFLICT (project_id, number) DO NOTHING

-- name: numbers.lock
SELECT number FROM experiment_changes WHERE project_id = $1 AND number = 0 FOR UPDATE

-- name: numbers.newest
SELECT number FROM experiment_changes WHERE project_id = $1 ORDER BY number DESC LIMIT 1

-- name: numbers.position
SELECT n.number,
    (SELECT l.number FROM experiment_changes l WHERE l.project_id = $1 AND l.number <= $2 ORDER BY l.number DESC LIMIT 1),
    (SELECT u.number FROM experiment_changes u WHERE u.project_id = $1 AND u.number >= $2 ORDER BY u.number LIMIT 1)
FROM experiment_changes n WHERE n.project_id = $1 ORDER BY n.number DESC LIMIT 1

-- name: putExperiment
INSERT INTO experiments AS e (project_id, experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics,
                              created_at, updated_at, observations, outcome, attachments, variants, flow_ids,
                              paused_showing_variant, winner_variant, status, changes, changed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 1, $18)
ON CONFLICT (project_id, experiment_id) DO UPDATE
SET flow_id = excluded.flow_id, name = excluded.name, hypothesis = excluded.hypothesis,
    impact_metrics = excluded.impact_metrics, no_impact_metrics = excluded.no_impact_metrics,
    created_at = excluded.created_at, updated_at = excluded.updated_at,
    observations = excluded.observations, outcome = excluded.outcome,
    attachments = excluded.attachments, variants = excluded.variants, flow_ids = excluded.flow_ids,
    paused_showing_variant = excluded.paused_showing_variant, winner_variant = excluded.winner_variant,
    status = excluded.status, changed = excluded.changed,
    changes = e.changes + CASE WHEN excluded.status IS DISTINCT FROM e.status THEN 1 ELSE 0 END
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.flow_id, excluded.name, excluded.hypothesis, excluded.impact_metrics, excluded.no_impact_metrics,
       excluded.created_at, excluded.observations, excluded.outcome, excluded.attachments, excluded.variants,
       excluded.flow_ids, excluded.paused_showing_variant, excluded.winner_variant, excluded.status)
      IS DISTINCT FROM (e.flow_id, e.name, e.hypothesis, e.impact_metrics, e.no_impact_metrics,
       e.created_at, e.observations, e.outcome, e.attachments, e.variants,
       e.flow_ids, e.paused_showing_variant, e.winner_variant, e.status)
RETURNING 1

-- name: putExperiments
INSERT INTO experiments AS e (project_id, experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics,
                              created_at, updated_at, observations, outcome, attachments, variants, flow_ids,
                              paused_showing_variant, winner_variant, status, changes, changed)
SELECT $1, u.experiment_id, u.flow_id, u.name, u.hypothesis, u.impact_metrics, u.no_impact_metrics,
       u.created_at, u.updated_at, u.observations, u.outcome, u.attachments, u.variants, u.flow_ids,
       u.paused_showing_variant, u.winner_variant, u.status, 1, u.changed
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::timestamptz[],
            $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[])
     AS u (experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
           observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status,
           changed)
ORDER BY u.experiment_id
ON CONFLICT (project_id, experiment_id) DO UPDATE
SET flow_id = excluded.flow_id, name = excluded.name, hypothesis = excluded.hypothesis,
    impact_metrics = excluded.impact_metrics, no_impact_metrics = excluded.no_impact_metrics,
    created_at = excluded.created_at, updated_at = excluded.updated_at,
    observations = excluded.observations, outcome = excluded.outcome,
    attachments = excluded.attachments, variants = excluded.variants, flow_ids = excluded.flow_ids,
    paused_showing_variant = excluded.paused_showing_variant, winner_variant = excluded.winner_variant,
    status = excluded.status, changed = excluded.changed,
    changes = e.changes + CASE WHEN excluded.status IS DISTINCT FROM e.status THEN 1 ELSE 0 END
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.flow_id, excluded.name, excluded.hypothesis, excluded.impact_metrics, excluded.no_impact_metrics,
       excluded.created_at, excluded.observations, excluded.outcome, excluded.attachments, excluded.variants,
       excluded.flow_ids, excluded.paused_showing_variant, excluded.winner_variant, excluded.status)
      IS DISTINCT FROM (e.flow_id, e.name, e.hypothesis, e.impact_metrics, e.no_impact_metrics,
       e.created_at, e.observations, e.outcome, e.attachments, e.variants,
       e.flow_ids, e.paused_showing_variant, e.winner_variant, e.status)
RETURNING 1

-- name: putStatusChanges
INSERT INTO status_changes (project_id, experiment_id, change, status, changed_at)
SELECT e.project_id, e.experiment_id, e.changes, e.status, e.updated_at
FROM experiments e
WHERE e.project_id = $1 AND e.experiment_id = ANY ($2::text[])
ON CONFLICT (project_id, experiment_id, change) DO NOTHING

-- name: statusChanges.chunk
SELECT change, status, changed_at, recorded_at
FROM status_changes
WHERE project_id = $1 AND experiment_id = $2 AND change > $3 AND change <= $4
ORDER BY change LIMIT $5

-- name: statusChanges.last
SELECT change
FROM status_changes
WHERE project_id = $1 AND experiment_id = $2 AND change > $3 AND change <= $4
ORDER BY change DESC LIMIT 1

-- name: statusChanges.nth
SELECT change
FROM status_changes
WHERE project_id = $1 AND experiment_id = $2 AND change > $3 AND change <= $4
ORDER BY change OFFSET $5 LIMIT 2
