-- The newest key of each page of a funnel. Parameters: $1 project_id, and the arrays $2, $3 and $4 with the entry, the
-- version and the index of each page. The least bigint as a version stands for page views without a version.
SELECT u.page, v.page_key
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS u (entry_id, version, page_index, page)
CROSS JOIN LATERAL (
    SELECT v.page_key
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = u.entry_id AND v.event_type = 'flowpage.viewed' AND v.page_index = u.page_index
      AND v.embeddable_version_number IS NOT DISTINCT FROM nullif(u.version, '-9223372036854775808'::bigint)
    ORDER BY v."timestamp" DESC, v.arrival DESC
    LIMIT 1
) v
