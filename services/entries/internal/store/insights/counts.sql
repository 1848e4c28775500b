-- Counts of the selected entries: a row for each interval and, by $9, for each embeddable or version.
-- Parameters: $1 project_id, $2 embeddable_id, $3 created_after, $4 created_before, $5 updated_after, $6 updated_before,
-- $7 version, $8 bounds of the intervals, $9 none, embeddable or version. NULL in $2 to $7 selects all, and NULL in $8 is
-- the interval "all". Postgres gets the bounds, so it needs no time zone.
--
-- Without a version in $7, the statement counts each entry without a version, and each row of progress with its version.
-- So an entry with rows of progress counts twice, which the service corrects by the column twice. Without a join,
-- Postgres groups the UNION ALL in parallel.
--
-- An answer has at most insight.MaxCounts rows, and so at most twice as many groups: for the same interval and embeddable,
-- at most one of several groups makes no row.
WITH counted AS (
    SELECT CASE WHEN $8::timestamptz[] IS NOT NULL AND created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z' THEN width_bucket(created_at, $8::timestamptz[]) END AS number,
           created_at, CASE WHEN $9::text <> 'none' THEN embeddable_id END AS embeddable_id, CASE WHEN $9::text = 'version' THEN version END AS version,
           counts::int AS entries, counts::int AS started,
           (counts AND completed_after IS NOT NULL)::int AS completed, ($7::bigint IS NULL AND part = 0)::int AS twice
    FROM progress /* of the entries with further filters */
    CROSS JOIN LATERAL (SELECT CASE WHEN $9::text = 'version' THEN part > 0 OR NOT several ELSE part = 0 END AS counts) c
    WHERE project_id = $1 AND embeddable_id IS NOT NULL
      AND ($2::text IS NULL OR embeddable_id = $2)
      AND ($3::timestamptz IS NULL OR created_at > $3) AND ($4::timestamptz IS NULL OR created_at < $4)
      AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6)
      AND ($7::bigint IS NULL OR version = $7 OR several AND EXISTS (
          SELECT FROM progress v WHERE v.project_id = $1 AND v.entry_id = progress.entry_id AND v.version = $7))
    UNION ALL
    SELECT CASE WHEN $8::timestamptz[] IS NOT NULL AND created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z' THEN width_bucket(created_at, $8::timestamptz[]) END,
           created_at, CASE WHEN $9::text <> 'none' THEN embeddable_id END, NULL, 1, 0, 0, 0
    FROM entries
    WHERE project_id = $1 AND $7::bigint IS NULL
      AND ($2::text IS NULL OR embeddable_id = $2)
      AND ($3::timestamptz IS NULL OR created_at > $3) AND ($4::timestamptz IS NULL OR created_at < $4)
      AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6) /* further filters */
)
SELECT number, embeddable_id, version, sum(entries), sum(started), sum(completed), sum(twice),
       CASE WHEN $8::timestamptz[] IS NULL THEN min(created_at) FILTER (WHERE created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z') END,
       CASE WHEN $8::timestamptz[] IS NULL THEN max(created_at) FILTER (WHERE created_at >= '2000-01-01 00:00Z' AND created_at < '2101-01-01 00:00Z') END
FROM counted
GROUP BY number, embeddable_id, version
ORDER BY number, embeddable_id, version
LIMIT 4001
