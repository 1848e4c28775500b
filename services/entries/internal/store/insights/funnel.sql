-- The rows of progress from which the service computes funnels. Without a version in $7, a further row has the number of
-- entries as its part. Parameters: see counts.sql.
SELECT entry_id, part, several, version, furthest, ended, completed_after, cells
FROM progress /* of the entries with further filters */
WHERE project_id = $1 AND embeddable_id IS NOT NULL
  AND ($2::text IS NULL OR embeddable_id = $2)
  AND ($3::timestamptz IS NULL OR created_at > $3) AND ($4::timestamptz IS NULL OR created_at < $4)
  AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6)
  AND ($7::bigint IS NULL OR version = $7 OR several AND EXISTS (
      SELECT FROM progress v WHERE v.project_id = $1 AND v.entry_id = progress.entry_id AND v.version = $7))
UNION ALL
SELECT NULL, count(1), NULL, NULL, NULL, NULL, NULL, NULL
FROM entries
WHERE project_id = $1
  AND ($2::text IS NULL OR embeddable_id = $2)
  AND ($3::timestamptz IS NULL OR created_at > $3) AND ($4::timestamptz IS NULL OR created_at < $4)
  AND ($5::timestamptz IS NULL OR updated_at > $5) AND ($6::timestamptz IS NULL OR updated_at < $6) /* further filters */
HAVING $7::bigint IS NULL
