-- All statements of the store. Written by: go test . -run Golden -update

-- name: addCounter
INSERT INTO project_changes (project_id, last_seq)
VALUES ($1, 0)
ON CONFLICT (project_id) DO NOTHING

-- name: addLost
INSERT INTO lost_numbers (project_id, after, until)
VALUES ($1, $2, $3)
ON CONFLICT (project_id, until, after) DO NOTHING

-- name: anyEntries
SELECT entry_id
FROM entries
WHERE project_id = $1
LIMIT $2

-- name: anyEventEntries
SELECT DISTINCT entry_id
FROM events
WHERE project_id = $1
ORDER BY entry_id
LIMIT $2

-- name: changes of entry,entry_removed.chunk
(SELECT seq, 1::bigint AS type, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       NULL::text AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
UNION ALL
(SELECT seq, 4::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       entry_id AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, removed_at, reason
FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
ORDER BY seq LIMIT $4

-- name: changes of entry,entry_removed.last
(SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
UNION ALL
(SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
ORDER BY seq DESC LIMIT 1

-- name: changes of entry,entry_removed.nth
(SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
UNION ALL
(SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
ORDER BY seq OFFSET $4 LIMIT 2

-- name: changes of entry,event,entry_removed.chunk
(SELECT seq, 1::bigint AS type, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       NULL::text AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
UNION ALL
(SELECT seq, 2::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props,
       entry_id AS changed, event_id, url, event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
UNION ALL
(SELECT seq, 4::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       entry_id AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, removed_at, reason
FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
ORDER BY seq LIMIT $4

-- name: changes of entry,event,entry_removed.last
(SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
UNION ALL
(SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
UNION ALL
(SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
ORDER BY seq DESC LIMIT 1

-- name: changes of entry,event,entry_removed.nth
(SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
UNION ALL
(SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
UNION ALL
(SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
ORDER BY seq OFFSET $4 LIMIT 2

-- name: changes of entry,event.chunk
(SELECT seq, 1::bigint AS type, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       NULL::text AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
UNION ALL
(SELECT seq, 2::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props,
       entry_id AS changed, event_id, url, event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
ORDER BY seq LIMIT $4

-- name: changes of entry,event.last
(SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
UNION ALL
(SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
ORDER BY seq DESC LIMIT 1

-- name: changes of entry,event.nth
(SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
UNION ALL
(SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
ORDER BY seq OFFSET $4 LIMIT 2

-- name: changes of entry.chunk
SELECT seq, 1::bigint AS type, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       NULL::text AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4

-- name: changes of entry.last
SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1

-- name: changes of entry.nth
SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq OFFSET $4 LIMIT 2

-- name: changes of entry_removed.chunk
SELECT seq, 4::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       entry_id AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, removed_at, reason
FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4

-- name: changes of entry_removed.last
SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1

-- name: changes of entry_removed.nth
SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq OFFSET $4 LIMIT 2

-- name: changes of event,entry_removed.chunk
(SELECT seq, 2::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props,
       entry_id AS changed, event_id, url, event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
UNION ALL
(SELECT seq, 4::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       entry_id AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, removed_at, reason
FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4)
ORDER BY seq LIMIT $4

-- name: changes of event,entry_removed.last
(SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
UNION ALL
(SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1)
ORDER BY seq DESC LIMIT 1

-- name: changes of event,entry_removed.nth
(SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
UNION ALL
(SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4::bigint + 2)
ORDER BY seq OFFSET $4 LIMIT 2

-- name: changes of event.chunk
SELECT seq, 2::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props,
       entry_id AS changed, event_id, url, event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq LIMIT $4

-- name: changes of event.last
SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq DESC LIMIT 1

-- name: changes of event.nth
SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3
ORDER BY seq OFFSET $4 LIMIT 2

-- name: count at most
SELECT NULL::int, NULL::text, NULL::bigint, count(1), count(p.entry_id), count(p.completed_after), 0,
       min(e.created_at) FILTER (WHERE e.created_at >= '2000-01-01 00:00Z' AND e.created_at < '2101-01-01 00:00Z'),
       max(e.created_at) FILTER (WHERE e.created_at >= '2000-01-01 00:00Z' AND e.created_at < '2101-01-01 00:00Z')
FROM (SELECT entry_id, created_at FROM entries WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND updated_at > $17 AND updated_at < $18 LIMIT $19) e
LEFT JOIN LATERAL (
    SELECT entry_id, completed_after FROM progress WHERE project_id = $1 AND entry_id = e.entry_id AND part = 0 LIMIT 1
) p ON true

-- name: countEntriesBefore
SELECT count(1)
FROM entries
WHERE project_id = $1 AND updated_at < $2

-- name: countEventsBefore
SELECT coalesce(sum(v.events), 0)::bigint
FROM (
    SELECT entry_id, count(1) AS events, max("timestamp") AS newest
    FROM events
    WHERE project_id = $1 AND entry_id > $3 AND entry_id <= $4
    GROUP BY entry_id
) v
LEFT JOIN entries e ON e.project_id = $1 AND e.entry_id = v.entry_id
WHERE coalesce(e.updated_at, v.newest) < $2

-- name: deleteCounter
DELETE FROM project_changes
WHERE project_id = $1

-- name: deleteEntries
DELETE FROM entries
WHERE project_id = $1 AND entry_id = ANY($2::text[])

-- name: deleteEvents
DELETE FROM events
WHERE project_id = $1 AND entry_id = ANY($2::text[])

-- name: deleteLost
DELETE FROM lost_numbers
WHERE project_id = $1

-- name: deleteProgress
DELETE FROM progress
WHERE project_id = $1 AND entry_id = ANY($2::text[])

-- name: entriesBefore
SELECT entry_id
FROM entries
WHERE project_id = $1 AND updated_at < $2
ORDER BY updated_at, entry_id
LIMIT $3

-- name: entriesByCreatedAtAscending by all.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND updated_at > $15 AND updated_at < $16 AND (created_at, entry_id) > ($17, $18) AND (created_at, entry_id) <= ($19, $20)
ORDER BY created_at, entry_id LIMIT $21

-- name: entriesByCreatedAtAscending by all.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND updated_at > $15 AND updated_at < $16 AND (created_at, entry_id) > ($17, $18) AND (created_at, entry_id) <= ($19, $20)
ORDER BY created_at DESC, entry_id DESC LIMIT 1

-- name: entriesByCreatedAtAscending by all.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND updated_at > $15 AND updated_at < $16 AND (created_at, entry_id) > ($17, $18) AND (created_at, entry_id) <= ($19, $20)
ORDER BY created_at, entry_id OFFSET $21 LIMIT 2

-- name: entriesByCreatedAtAscending.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) > ($2, $3) AND (created_at, entry_id) <= ($4, $5)
ORDER BY created_at, entry_id LIMIT $6

-- name: entriesByCreatedAtAscending.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) > ($2, $3) AND (created_at, entry_id) <= ($4, $5)
ORDER BY created_at DESC, entry_id DESC LIMIT 1

-- name: entriesByCreatedAtAscending.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) > ($2, $3) AND (created_at, entry_id) <= ($4, $5)
ORDER BY created_at, entry_id OFFSET $6 LIMIT 2

-- name: entriesByCreatedAtDescending by all.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND updated_at > $15 AND updated_at < $16 AND (created_at, entry_id) < ($17, $18) AND (created_at, entry_id) >= ($19, $20)
ORDER BY created_at DESC, entry_id DESC LIMIT $21

-- name: entriesByCreatedAtDescending by all.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND updated_at > $15 AND updated_at < $16 AND (created_at, entry_id) < ($17, $18) AND (created_at, entry_id) >= ($19, $20)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by all.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND updated_at > $15 AND updated_at < $16 AND (created_at, entry_id) < ($17, $18) AND (created_at, entry_id) >= ($19, $20)
ORDER BY created_at DESC, entry_id DESC OFFSET $21 LIMIT 2

-- name: entriesByCreatedAtDescending by answer.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (strpos(entry_data, $2::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $3::text::jsonb) AND (created_at, entry_id) < ($4, $5) AND (created_at, entry_id) >= ($6, $7)
ORDER BY created_at DESC, entry_id DESC LIMIT $8

-- name: entriesByCreatedAtDescending by answer.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(entry_data, $2::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $3::text::jsonb) AND (created_at, entry_id) < ($4, $5) AND (created_at, entry_id) >= ($6, $7)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by answer.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(entry_data, $2::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $3::text::jsonb) AND (created_at, entry_id) < ($4, $5) AND (created_at, entry_id) >= ($6, $7)
ORDER BY created_at DESC, entry_id DESC OFFSET $8 LIMIT 2

-- name: entriesByCreatedAtDescending by answer_key.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5)
ORDER BY created_at DESC, entry_id DESC LIMIT $6

-- name: entriesByCreatedAtDescending by answer_key.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by answer_key.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5)
ORDER BY created_at DESC, entry_id DESC OFFSET $6 LIMIT 2

-- name: entriesByCreatedAtDescending by completed.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by completed.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by completed.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by contact.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by contact.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by contact.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by embeddable.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by embeddable.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by embeddable.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by furthest_page.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by furthest_page.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by furthest_page.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by group.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by group.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by group.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by search.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $2::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $2::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $2::text) > 0)) AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by search.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $2::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $2::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $2::text) > 0)) AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by search.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $2::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $2::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $2::text) > 0)) AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by updated_after.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND updated_at > $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by updated_after.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND updated_at > $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by updated_after.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND updated_at > $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by updated_before.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND updated_at < $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC LIMIT $7

-- name: entriesByCreatedAtDescending by updated_before.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND updated_at < $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by updated_before.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND updated_at < $2 AND (created_at, entry_id) < ($3, $4) AND (created_at, entry_id) >= ($5, $6)
ORDER BY created_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByCreatedAtDescending by version.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (created_at, entry_id) < ($4, $5) AND (created_at, entry_id) >= ($6, $7)
ORDER BY created_at DESC, entry_id DESC LIMIT $8

-- name: entriesByCreatedAtDescending by version.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (created_at, entry_id) < ($4, $5) AND (created_at, entry_id) >= ($6, $7)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending by version.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (created_at, entry_id) < ($4, $5) AND (created_at, entry_id) >= ($6, $7)
ORDER BY created_at DESC, entry_id DESC OFFSET $8 LIMIT 2

-- name: entriesByCreatedAtDescending.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5)
ORDER BY created_at DESC, entry_id DESC LIMIT $6

-- name: entriesByCreatedAtDescending.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5)
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5)
ORDER BY created_at DESC, entry_id DESC OFFSET $6 LIMIT 2

-- name: entriesByUpdatedAtAscending by all.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND (updated_at, entry_id) > ($17, $18) AND (updated_at, entry_id) <= ($19, $20)
ORDER BY updated_at, entry_id LIMIT $21

-- name: entriesByUpdatedAtAscending by all.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND (updated_at, entry_id) > ($17, $18) AND (updated_at, entry_id) <= ($19, $20)
ORDER BY updated_at DESC, entry_id DESC LIMIT 1

-- name: entriesByUpdatedAtAscending by all.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND (updated_at, entry_id) > ($17, $18) AND (updated_at, entry_id) <= ($19, $20)
ORDER BY updated_at, entry_id OFFSET $21 LIMIT 2

-- name: entriesByUpdatedAtAscending.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) > ($2, $3) AND (updated_at, entry_id) <= ($4, $5)
ORDER BY updated_at, entry_id LIMIT $6

-- name: entriesByUpdatedAtAscending.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) > ($2, $3) AND (updated_at, entry_id) <= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT 1

-- name: entriesByUpdatedAtAscending.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) > ($2, $3) AND (updated_at, entry_id) <= ($4, $5)
ORDER BY updated_at, entry_id OFFSET $6 LIMIT 2

-- name: entriesByUpdatedAtDescending by all.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND (updated_at, entry_id) < ($17, $18) AND (updated_at, entry_id) >= ($19, $20)
ORDER BY updated_at DESC, entry_id DESC LIMIT $21

-- name: entriesByUpdatedAtDescending by all.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND (updated_at, entry_id) < ($17, $18) AND (updated_at, entry_id) >= ($19, $20)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by all.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (strpos(entry_data, $11::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $12::text::jsonb AND f.key = $13::text) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $14::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $14::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $14::text) > 0)) AND created_at > $15 AND created_at < $16 AND (updated_at, entry_id) < ($17, $18) AND (updated_at, entry_id) >= ($19, $20)
ORDER BY updated_at DESC, entry_id DESC OFFSET $21 LIMIT 2

-- name: entriesByUpdatedAtDescending by answer.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (strpos(entry_data, $2::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $3::text::jsonb) AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at DESC, entry_id DESC LIMIT $8

-- name: entriesByUpdatedAtDescending by answer.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(entry_data, $2::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $3::text::jsonb) AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by answer.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(entry_data, $2::text) > 0 OR strpos(entry_data, '\') > 0) AND EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL (SELECT f.value UNION ALL SELECT jsonb_path_query(f.value, '$[*]')) v (value) WHERE v.value = $3::text::jsonb) AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at DESC, entry_id DESC OFFSET $8 LIMIT 2

-- name: entriesByUpdatedAtDescending by answer_key.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT $6

-- name: entriesByUpdatedAtDescending by answer_key.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by answer_key.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC OFFSET $6 LIMIT 2

-- name: entriesByUpdatedAtDescending by completed.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by completed.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by completed.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by contact.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by contact.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by contact.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by created_after.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND created_at > $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by created_after.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND created_at > $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by created_after.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND created_at > $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by created_before.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND created_at < $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by created_before.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND created_at < $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by created_before.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND created_at < $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by embeddable.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by embeddable.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by embeddable.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by furthest_page.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by furthest_page.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by furthest_page.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by group.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by group.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by group.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by search.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $2::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $2::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $2::text) > 0)) AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7

-- name: entriesByUpdatedAtDescending by search.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $2::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $2::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $2::text) > 0)) AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by search.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id || E'\n' || entry_data) COLLATE "C"), $2::text) > 0 OR strpos(entry_data, '\') > 0) AND (strpos(lower((entry_id || E'\n' || contact_id || E'\n' || group_id || E'\n' || embeddable_id) COLLATE "C"), $2::text) > 0 OR EXISTS (SELECT FROM jsonb_each(CASE WHEN strpos(entry_data, '\u') > 0 OR octet_length(entry_data) > 5000 OR entry_data ~ '[0-9][eE][-+]?[0-9]{4}' THEN entry_json(entry_data) ELSE parse_entry(entry_data) END) f CROSS JOIN LATERAL jsonb_path_query(f.value, '$[*]') v WHERE jsonb_typeof(v) IN ('string', 'number') AND strpos(lower((v #>> '{}') COLLATE "C"), $2::text) > 0)) AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC OFFSET $7 LIMIT 2

-- name: entriesByUpdatedAtDescending by version.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at DESC, entry_id DESC LIMIT $8

-- name: entriesByUpdatedAtDescending by version.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending by version.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at DESC, entry_id DESC OFFSET $8 LIMIT 2

-- name: entriesByUpdatedAtDescending.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT $6

-- name: entriesByUpdatedAtDescending.last
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at, entry_id LIMIT 1

-- name: entriesByUpdatedAtDescending.nth
SELECT updated_at, entry_id
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC OFFSET $6 LIMIT 2

-- name: entriesOfContact
SELECT entry_id
FROM entries
WHERE project_id = $1 AND contact_id = $2
LIMIT $3

-- name: entriesOfContactEvents
SELECT DISTINCT entry_id
FROM events
WHERE project_id = $1 AND contact_id = $2
ORDER BY entry_id
LIMIT $3

-- name: entryChanges
SELECT seq, 1::bigint AS type, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       NULL::text AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3

-- name: entryNumbers
SELECT seq FROM entries
WHERE project_id = $1 AND seq > $2 AND seq <= $3

-- name: erasedAmong
SELECT entry_id
FROM removals
WHERE project_id = $1 AND entry_id = ANY($2) AND reason = 'erased'

-- name: eventChanges
SELECT seq, 2::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props,
       entry_id AS changed, event_id, url, event_key, NULL::timestamptz AS removed_at, NULL::text AS reason
FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3

-- name: eventNumbers
SELECT seq FROM events
WHERE project_id = $1 AND seq > $2 AND seq <= $3

-- name: eventsAscending.chunk
SELECT arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) > ($3, $4) AND ("timestamp", arrival) <= ($5, $6)
ORDER BY "timestamp", arrival LIMIT $7

-- name: eventsAscending.first
SELECT v.arrival, v.contact_id, v.group_id, v.embeddable_id, v.embeddable_version_number, v."timestamp", v.page_id, v.page_key, v.page_index, v.max_page_id, v.max_page_key, v.max_page_index, v.total_pages, v.event_type, v.view_type, v.custom_event_name, v.custom_event_props
FROM (SELECT entry_id FROM entries WHERE project_id = $1 AND entry_id = $2) e
LEFT JOIN (
SELECT arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) > ($3, $4) AND ("timestamp", arrival) <= ($5, $6)
ORDER BY "timestamp", arrival LIMIT $7
) v ON true
ORDER BY v."timestamp", v.arrival

-- name: eventsAscending.last
SELECT "timestamp", arrival
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) > ($3, $4) AND ("timestamp", arrival) <= ($5, $6)
ORDER BY "timestamp" DESC, arrival DESC LIMIT 1

-- name: eventsAscending.nth
SELECT "timestamp", arrival
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) > ($3, $4) AND ("timestamp", arrival) <= ($5, $6)
ORDER BY "timestamp", arrival OFFSET $7 LIMIT 2

-- name: eventsDescending.chunk
SELECT arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) < ($3, $4) AND ("timestamp", arrival) >= ($5, $6)
ORDER BY "timestamp" DESC, arrival DESC LIMIT $7

-- name: eventsDescending.first
SELECT v.arrival, v.contact_id, v.group_id, v.embeddable_id, v.embeddable_version_number, v."timestamp", v.page_id, v.page_key, v.page_index, v.max_page_id, v.max_page_key, v.max_page_index, v.total_pages, v.event_type, v.view_type, v.custom_event_name, v.custom_event_props
FROM (SELECT entry_id FROM entries WHERE project_id = $1 AND entry_id = $2) e
LEFT JOIN (
SELECT arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) < ($3, $4) AND ("timestamp", arrival) >= ($5, $6)
ORDER BY "timestamp" DESC, arrival DESC LIMIT $7
) v ON true
ORDER BY v."timestamp" DESC, v.arrival DESC

-- name: eventsDescending.last
SELECT "timestamp", arrival
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) < ($3, $4) AND ("timestamp", arrival) >= ($5, $6)
ORDER BY "timestamp", arrival LIMIT 1

-- name: eventsDescending.nth
SELECT "timestamp", arrival
FROM events
WHERE project_id = $1 AND entry_id = $2 AND ("timestamp", arrival) < ($3, $4) AND ("timestamp", arrival) >= ($5, $6)
ORDER BY "timestamp" DESC, arrival DESC OFFSET $7 LIMIT 2

-- name: furtherViews
SELECT "timestamp", arrival, page_id, page_key, page_index, url
FROM events
WHERE project_id = $1 AND entry_id = $2 AND event_type = 'flowpage.viewed'
  AND ("timestamp", arrival) > ($3, $4)
ORDER BY "timestamp", arrival LIMIT $5

-- name: getEntry
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND entry_id = $2

-- name: goOn
UPDATE project_changes
SET last_seq = $2, identity = $3
WHERE project_id = $1

-- name: lastSeq
SELECT last_seq
FROM project_changes
WHERE project_id = $1

-- name: lostAround
SELECT until
FROM lost_numbers
WHERE project_id = $1 AND after < $2 AND until > $2
ORDER BY until DESC
LIMIT 1

-- name: lostNumbers
SELECT $3::bigint IS NOT NULL OR identity IS NOT NULL AND last_seq > 0, least(last_seq, $3), (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + 3600000000 * (1 + (greatest(last_seq - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, 0) + 3600000000 - 1) / 3600000000)
FROM project_changes
WHERE project_id = $1 AND ($3::bigint IS NOT NULL OR last_seq = 0 OR identity IS DISTINCT FROM $2::text)
FOR UPDATE

-- name: orphansBefore
SELECT v.entry_id
FROM events v
WHERE v.project_id = $1 AND v.entry_id > $3 AND v.entry_id <= $4
  AND NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.entry_id = v.entry_id)
GROUP BY v.entry_id
HAVING max(v."timestamp") < $2
ORDER BY v.entry_id
LIMIT $5

-- name: pageViewsAscending
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) > ($2, $3) AND (updated_at, entry_id) <= ($4, $5)
ORDER BY updated_at, entry_id LIMIT $6) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $7
) v ON true
ORDER BY e.updated_at, e.entry_id, v."timestamp", v.arrival LIMIT $7

-- name: pageViewsAscending by all
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (updated_at, entry_id) > ($11, $12) AND (updated_at, entry_id) <= ($13, $14)
ORDER BY updated_at, entry_id LIMIT $15) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $16
) v ON true
ORDER BY e.updated_at, e.entry_id, v."timestamp", v.arrival LIMIT $16

-- name: pageViewsDescending
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT $6) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $7
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $7

-- name: pageViewsDescending by all
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND contact_id = $3 AND group_id = $4 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $5 AND (p.part > 0 OR NOT p.several)
), NULL) = $6 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $7 AND (p.part > 0 OR NOT p.several)
), false) = $8 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $9 AND (p.part > 0 OR NOT p.several)
), NULL) = $10 AND (updated_at, entry_id) < ($11, $12) AND (updated_at, entry_id) >= ($13, $14)
ORDER BY updated_at DESC, entry_id DESC LIMIT $15) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $16
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $16

-- name: pageViewsDescending by completed
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.completed_after IS NOT NULL
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), false) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $8
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $8

-- name: pageViewsDescending by contact
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND contact_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $8
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $8

-- name: pageViewsDescending by embeddable
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND embeddable_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $8
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $8

-- name: pageViewsDescending by furthest_page
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.furthest
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.part = 0
), NULL) = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $8
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $8

-- name: pageViewsDescending by group
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND group_id = $2 AND (updated_at, entry_id) < ($3, $4) AND (updated_at, entry_id) >= ($5, $6)
ORDER BY updated_at DESC, entry_id DESC LIMIT $7) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $8
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $8

-- name: pageViewsDescending by updated_after
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT $6) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $7
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $7

-- name: pageViewsDescending by updated_before
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND (updated_at, entry_id) < ($2, $3) AND (updated_at, entry_id) >= ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT $6) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $7
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $7

-- name: pageViewsDescending by version
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at
FROM entries
WHERE project_id = $1 AND coalesce((
    SELECT p.version
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = entries.entry_id AND p.version = $2 AND (p.part > 0 OR NOT p.several)
), NULL) = $3 AND (updated_at, entry_id) < ($4, $5) AND (updated_at, entry_id) >= ($6, $7)
ORDER BY updated_at DESC, entry_id DESC LIMIT $8) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT $9
) v ON true
ORDER BY e.updated_at DESC, e.entry_id DESC, v."timestamp", v.arrival LIMIT $9

-- name: partsOf
SELECT u.entry_id, e.embeddable_id, e.created_at, e.updated_at,
       p.part, p.version, p.several, p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits
FROM unnest($2::text[]) AS u (entry_id)
LEFT JOIN LATERAL (
    SELECT e.embeddable_id, e.created_at, e.updated_at FROM entries e WHERE e.project_id = $1 AND e.entry_id = u.entry_id LIMIT 1
) e ON true
LEFT JOIN LATERAL (
    SELECT p.part, p.version, p.several, p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = u.entry_id
    ORDER BY p.part
) p ON true
ORDER BY u.entry_id, p.part

-- name: positionOf
SELECT c.last_seq, pg_is_in_recovery(), l.after, l.until
FROM project_changes c
LEFT JOIN lost_numbers l ON l.project_id = $1 AND l.until > $2
WHERE c.project_id = $1
ORDER BY l.after
LIMIT 1

-- name: projectsAfter
SELECT project_id
FROM project_changes
WHERE project_id > $1
ORDER BY project_id
LIMIT $2

-- name: putEntries
INSERT INTO entries AS e (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data, seq)
SELECT $1, u.entry_id, u.group_id, u.embeddable_id, u.contact_id, u.created_at, u.updated_at, u.entry_data, u.seq
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::bigint[])
     AS u (entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data, seq)
ORDER BY u.entry_id
ON CONFLICT (project_id, entry_id) DO UPDATE
SET group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, entry_data = excluded.entry_data, seq = excluded.seq,
    replaced = true
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.group_id, excluded.embeddable_id, excluded.contact_id, excluded.created_at, excluded.entry_data)
      IS DISTINCT FROM (e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.entry_data)
RETURNING e.replaced

-- name: putEntry
INSERT INTO entries AS e (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data, seq)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (project_id, entry_id) DO UPDATE
SET group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, entry_data = excluded.entry_data, seq = excluded.seq,
    replaced = true
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.group_id, excluded.embeddable_id, excluded.contact_id, excluded.created_at, excluded.entry_data)
      IS DISTINCT FROM (e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.entry_data)
RETURNING e.replaced

-- name: putEvent
INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number,
                    "timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
                    event_type, view_type, custom_event_name, custom_event_props, url, event_id, seq)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
ON CONFLICT (project_id, event_key) DO NOTHING
RETURNING 1

-- name: putEvents
INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number,
                    "timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
                    event_type, view_type, custom_event_name, custom_event_props, url, event_id, seq)
SELECT $1, u.event_key, u.entry_id, u.contact_id, u.group_id, u.embeddable_id, u.embeddable_version_number,
       u."timestamp", u.page_id, u.page_key, u.page_index, u.max_page_id, u.max_page_key, u.max_page_index, u.total_pages,
       u.event_type, u.view_type, u.custom_event_name, u.custom_event_props, u.url, u.event_id, u.seq
FROM unnest($2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
            $9::text[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bigint[], $15::bigint[],
            $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::bigint[])
     WITH ORDINALITY AS u (event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
            page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
            event_type, view_type, custom_event_name, custom_event_props, url, event_id, seq, line)
ORDER BY u.line
ON CONFLICT (project_id, event_key) DO NOTHING
RETURNING 1

-- name: putOneProgress
INSERT INTO progress AS p (project_id, entry_id, part, version, several, embeddable_id, created_at, updated_at,
                           furthest, ended, completed_after, cells, first_view, latest_view, waits)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (project_id, entry_id, part) DO UPDATE
SET version = excluded.version, several = excluded.several, embeddable_id = excluded.embeddable_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, furthest = excluded.furthest,
    ended = excluded.ended, completed_after = excluded.completed_after, cells = excluded.cells,
    first_view = excluded.first_view, latest_view = excluded.latest_view, waits = excluded.waits
WHERE (excluded.embeddable_id, excluded.created_at, excluded.updated_at, excluded.version, excluded.several,
       excluded.furthest, excluded.ended, excluded.completed_after, excluded.cells,
       excluded.first_view, excluded.latest_view, excluded.waits)
      IS DISTINCT FROM (p.embeddable_id, p.created_at, p.updated_at, p.version, p.several,
       p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits)
RETURNING 1

-- name: putProgress
INSERT INTO progress AS p (project_id, entry_id, part, version, several, embeddable_id, created_at, updated_at,
                           furthest, ended, completed_after, cells, first_view, latest_view, waits)
SELECT $1, u.entry_id, u.part, u.version, u.several, u.embeddable_id, u.created_at, u.updated_at,
       u.furthest, u.ended, u.completed_after, u.cells, u.first_view, u.latest_view, u.waits
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::boolean[], $6::text[], $7::timestamptz[], $8::timestamptz[],
            $9::bigint[], $10::boolean[], $11::bigint[], $12::bytea[], $13::bigint[], $14::bigint[], $15::bigint[])
     AS u (entry_id, part, version, several, embeddable_id, created_at, updated_at, furthest, ended, completed_after, cells,
           first_view, latest_view, waits)
ORDER BY u.entry_id, u.part
ON CONFLICT (project_id, entry_id, part) DO UPDATE
SET version = excluded.version, several = excluded.several, embeddable_id = excluded.embeddable_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, furthest = excluded.furthest,
    ended = excluded.ended, completed_after = excluded.completed_after, cells = excluded.cells,
    first_view = excluded.first_view, latest_view = excluded.latest_view, waits = excluded.waits
WHERE (excluded.embeddable_id, excluded.created_at, excluded.updated_at, excluded.version, excluded.several,
       excluded.furthest, excluded.ended, excluded.completed_after, excluded.cells,
       excluded.first_view, excluded.latest_view, excluded.waits)
      IS DISTINCT FROM (p.embeddable_id, p.created_at, p.updated_at, p.version, p.several,
       p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits)
RETURNING 1

-- name: putRemoval
INSERT INTO removals AS r (project_id, entry_id, seq, removed_at, reason)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project_id, entry_id) DO UPDATE
SET seq = excluded.seq, removed_at = excluded.removed_at, reason = excluded.reason
WHERE r.reason = 'purged'
RETURNING 1

-- name: putRemovals
INSERT INTO removals AS r (project_id, entry_id, seq, removed_at, reason)
SELECT $1, u.entry_id, u.seq, u.removed_at, u.reason
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::text[]) AS u (entry_id, seq, removed_at, reason)
ORDER BY u.entry_id
ON CONFLICT (project_id, entry_id) DO UPDATE
SET seq = excluded.seq, removed_at = excluded.removed_at, reason = excluded.reason
WHERE r.reason = 'purged'
RETURNING 1

-- name: removalChanges
SELECT seq, 4::bigint AS type, NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data,
       NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props,
       entry_id AS changed, NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key, removed_at, reason
FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3

-- name: removalNumbers
SELECT seq FROM removals
WHERE project_id = $1 AND seq > $2 AND seq <= $3

-- name: removeOldLost
DELETE FROM lost_numbers
WHERE project_id = $1 AND until <= (
    SELECT until
    FROM lost_numbers
    WHERE project_id = $1
    ORDER BY until DESC
    OFFSET 100
    LIMIT 1)

-- name: removeTombstones
DELETE FROM removals
WHERE project_id = $1 AND entry_id <= (
    SELECT w.entry_id
    FROM (SELECT entry_id FROM removals WHERE project_id = $1 ORDER BY entry_id LIMIT $2) w
    ORDER BY w.entry_id DESC
    LIMIT 1)

-- name: stillBefore
SELECT entry_id
FROM entries
WHERE project_id = $1 AND entry_id = ANY($3::text[]) AND updated_at < $2

-- name: stillOrphans
SELECT v.entry_id
FROM events v
WHERE v.project_id = $1 AND v.entry_id = ANY($3::text[])
  AND NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.entry_id = v.entry_id)
GROUP BY v.entry_id
HAVING max(v."timestamp") < $2

-- name: takeNumbers
UPDATE project_changes
SET last_seq = greatest(last_seq + 1, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $2::bigint - 1
WHERE project_id = $1 AND identity IS NOT DISTINCT FROM (SELECT concat_ws('/', s.system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
     substring(pg_relation_filepath('project_changes') FROM '(.*)/'), 'project_changes'::regclass::oid)
 FROM pg_control_system() s)
RETURNING last_seq

-- name: takeNumbersAs
UPDATE project_changes
SET last_seq = greatest(last_seq + 1, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $2::bigint - 1
WHERE project_id = $1 AND identity IS NOT DISTINCT FROM $3::text
RETURNING last_seq

-- name: viewedOf
SELECT u.entry_id
FROM unnest($2::text[]) AS u (entry_id)
CROSS JOIN LATERAL (SELECT FROM progress p WHERE p.project_id = $1 AND p.entry_id = u.entry_id LIMIT 1) p

-- name: viewsOf
SELECT u.entry_id, v.embeddable_version_number, v.page_index, v.total_pages, v."timestamp"
FROM unnest($2::text[]) AS u (entry_id)
CROSS JOIN LATERAL (
    SELECT v.embeddable_version_number, v.page_index, v.total_pages, v."timestamp", v.arrival
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = u.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival
) v
ORDER BY u.entry_id, v."timestamp", v.arrival

-- name: windowEnd
SELECT max(w.entry_id)
FROM (SELECT entry_id FROM events WHERE project_id = $1 AND entry_id > $2 ORDER BY entry_id LIMIT $3) w
