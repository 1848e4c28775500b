-- All statements of the store. Written by: go test . -run Golden -update

-- name: entriesByCreatedAtAscending.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) > ($2, $3) AND (created_at, entry_id) <= ($4, $5) AND updated_at > $7 AND updated_at < $8
ORDER BY created_at, entry_id LIMIT $6

-- name: entriesByCreatedAtAscending.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) > ($2, $3) AND (created_at, entry_id) <= ($4, $5) AND updated_at > $6 AND updated_at < $7
ORDER BY created_at DESC, entry_id DESC LIMIT 1

-- name: entriesByCreatedAtAscending.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) > ($2, $3) AND (created_at, entry_id) <= ($4, $5) AND updated_at > $7 AND updated_at < $8
ORDER BY created_at, entry_id OFFSET $6 LIMIT 2

-- name: entriesByCreatedAtDescending.chunk
SELECT entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5) AND updated_at > $7 AND updated_at < $8
ORDER BY created_at DESC, entry_id DESC LIMIT $6

-- name: entriesByCreatedAtDescending.last
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5) AND updated_at > $6 AND updated_at < $7
ORDER BY created_at, entry_id LIMIT 1

-- name: entriesByCreatedAtDescending.nth
SELECT created_at, entry_id
FROM entries
WHERE project_id = $1 AND (created_at, entry_id) < ($2, $3) AND (created_at, entry_id) >= ($4, $5) AND updated_at > $7 AND updated_at < $8
ORDER BY created_at DESC, entry_id DESC OFFSET $6 LIMIT 2

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

-- name: putEntries
INSERT INTO entries AS e (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data)
SELECT $1, u.entry_id, u.group_id, u.embeddable_id, u.contact_id, u.created_at, u.updated_at, u.entry_data
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[])
     AS u (entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data)
ORDER BY u.entry_id
ON CONFLICT (project_id, entry_id) DO UPDATE
SET group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, entry_data = excluded.entry_data
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.group_id, excluded.embeddable_id, excluded.contact_id, excluded.created_at, excluded.entry_data)
      IS DISTINCT FROM (e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.entry_data)
RETURNING 1

-- name: putEntry
INSERT INTO entries AS e (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (project_id, entry_id) DO UPDATE
SET group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, entry_data = excluded.entry_data
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.group_id, excluded.embeddable_id, excluded.contact_id, excluded.created_at, excluded.entry_data)
      IS DISTINCT FROM (e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.entry_data)
RETURNING 1

-- name: putEvent
INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number,
                    "timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
                    event_type, view_type, custom_event_name, custom_event_props, url, event_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
ON CONFLICT (project_id, event_key) DO NOTHING
RETURNING 1

-- name: putEvents
INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number,
                    "timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
                    event_type, view_type, custom_event_name, custom_event_props, url, event_id)
SELECT $1, u.event_key, u.entry_id, u.contact_id, u.group_id, u.embeddable_id, u.embeddable_version_number,
       u."timestamp", u.page_id, u.page_key, u.page_index, u.max_page_id, u.max_page_key, u.max_page_index, u.total_pages,
       u.event_type, u.view_type, u.custom_event_name, u.custom_event_props, u.url, u.event_id
FROM unnest($2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
            $9::text[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bigint[], $15::bigint[],
            $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[])
     WITH ORDINALITY AS u (event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
            page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
            event_type, view_type, custom_event_name, custom_event_props, url, event_id, line)
ORDER BY u.line
ON CONFLICT (project_id, event_key) DO NOTHING
RETURNING 1
