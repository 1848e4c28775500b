-- The overview of a project. One statement reads all of the overview, so its figures are of one moment. There is a row
-- for each interval that has entries, and one for entries without an interval. The row of the earlier period has the
-- number 0. A further row has the embeddables with the most entries, as JSON.
-- Parameters: $1 to $8 as in counts.sql, and $9 the time after which the earlier period begins. NULL in $3 and $9: there
-- is no earlier period.
--
-- The largest drop is the page with the largest share of dropped entries. Only pages that a tenth of the started entries
-- reached count. The statement finds the key of the page as page_keys.sql does.
WITH counted AS (
    SELECT CASE WHEN created_at <= $3::timestamptz THEN 0
                WHEN $8::timestamptz[] IS NOT NULL AND created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z' THEN width_bucket(created_at, $8::timestamptz[]) END AS number,
           created_at, embeddable_id, ($7::bigint IS NOT NULL)::int AS entries, 1 AS started,
           (completed_after IS NOT NULL)::int AS completed, furthest, (NOT ended)::int AS dropped
    FROM progress /* of the entries with further filters */
    WHERE project_id = $1 AND part = 0 AND embeddable_id IS NOT NULL
      AND ($2::text IS NULL OR embeddable_id = $2)
      AND ($9::timestamptz IS NULL OR created_at > $9) AND ($4::timestamptz IS NULL OR created_at < $4)
      AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6)
      AND ($7::bigint IS NULL OR version = $7 OR several AND EXISTS (
          SELECT FROM progress v WHERE v.project_id = $1 AND v.entry_id = progress.entry_id AND v.version = $7))
    UNION ALL
    SELECT CASE WHEN created_at <= $3::timestamptz THEN 0
                WHEN $8::timestamptz[] IS NOT NULL AND created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z' THEN width_bucket(created_at, $8::timestamptz[]) END,
           created_at, embeddable_id, 1, 0, 0, NULL, 0
    FROM entries
    WHERE project_id = $1 AND $7::bigint IS NULL
      AND ($2::text IS NULL OR embeddable_id = $2)
      AND ($9::timestamptz IS NULL OR created_at > $9) AND ($4::timestamptz IS NULL OR created_at < $4)
      AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6) /* further filters */
), grouped AS MATERIALIZED (
    SELECT number IS NOT DISTINCT FROM 0 AS earlier, number, embeddable_id, furthest,
           sum(entries) AS entries, sum(started) AS started, sum(completed) AS completed, sum(dropped) AS dropped,
           min(created_at) FILTER (WHERE created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z') AS first,
           max(created_at) FILTER (WHERE created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z') AS last
    FROM counted
    GROUP BY number, embeddable_id, furthest
), embeddable AS (
    SELECT embeddable_id,
           coalesce(sum(entries) FILTER (WHERE NOT earlier), 0) AS entries, coalesce(sum(started) FILTER (WHERE NOT earlier), 0) AS started,
           coalesce(sum(completed) FILTER (WHERE NOT earlier), 0) AS completed, coalesce(sum(entries) FILTER (WHERE earlier), 0) AS earlier_entries,
           coalesce(sum(started) FILTER (WHERE earlier), 0) AS earlier_started, coalesce(sum(completed) FILTER (WHERE earlier), 0) AS earlier_completed
    FROM grouped
    GROUP BY embeddable_id
    ORDER BY 2 DESC, embeddable_id
    LIMIT 1000
), page AS (
    SELECT embeddable_id, furthest, sum(started) AS stopped, sum(dropped) AS dropped
    FROM grouped
    WHERE NOT earlier AND furthest IS NOT NULL
    GROUP BY embeddable_id, furthest
), lost AS (
    SELECT DISTINCT ON (embeddable_id) embeddable_id, furthest, reached, dropped
    FROM (
        SELECT embeddable_id, furthest, dropped, sum(stopped) OVER (PARTITION BY embeddable_id ORDER BY furthest DESC) AS reached,
               sum(stopped) OVER (PARTITION BY embeddable_id) AS started
        FROM page
    ) p
    WHERE dropped > 0 AND reached * 10 >= started
    ORDER BY embeddable_id, dropped::float8 / reached::float8 DESC, furthest
)
SELECT number, sum(entries), sum(started), sum(completed), min(first), max(last), NULL::json
FROM grouped
GROUP BY number
UNION ALL
SELECT NULL, 0, 0, 0, NULL, NULL, coalesce(json_agg(json_build_object(
    'embeddable_id', e.embeddable_id, 'entries', e.entries, 'started', e.started, 'completed', e.completed,
    'previous', CASE WHEN $3::timestamptz IS NOT NULL THEN
        json_build_object('entries', e.earlier_entries, 'started', e.earlier_started, 'completed', e.earlier_completed) END,
    'largest_drop', CASE WHEN k.page_key IS NOT NULL THEN
        json_build_object('page_index', l.furthest, 'page_key', k.page_key, 'reached', l.reached, 'dropped', l.dropped) END
) ORDER BY e.entries DESC, e.embeddable_id), '[]')
FROM embeddable e
LEFT JOIN lost l USING (embeddable_id)
LEFT JOIN LATERAL (
    SELECT v.page_key
    FROM (
        SELECT entry_id, version
        FROM progress
        WHERE project_id = $1 AND embeddable_id = l.embeddable_id AND furthest >= l.furthest AND (part > 0 OR NOT several)
          AND ($2::text IS NULL OR embeddable_id = $2)
          AND ($3::timestamptz IS NULL OR created_at > $3) AND ($4::timestamptz IS NULL OR created_at < $4)
          AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6) /* further filters of progress */
          AND ($7::bigint IS NULL OR version = $7 OR several AND EXISTS (
              SELECT FROM progress v WHERE v.project_id = $1 AND v.entry_id = progress.entry_id AND v.version = $7))
        ORDER BY version DESC NULLS LAST, entry_id DESC
    ) p
    CROSS JOIN LATERAL (
        SELECT v.page_key
        FROM events v
        WHERE v.project_id = $1 AND v.entry_id = p.entry_id AND v.event_type = 'flowpage.viewed' AND v.page_index = l.furthest
          AND v.embeddable_version_number IS NOT DISTINCT FROM p.version
        ORDER BY v."timestamp" DESC, v.arrival DESC
        LIMIT 1
    ) v
    ORDER BY p.version DESC NULLS LAST, p.entry_id DESC
    LIMIT 1
) k ON true
ORDER BY 1
