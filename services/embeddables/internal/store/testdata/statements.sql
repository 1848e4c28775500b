-- All statements of the store. Written by: go test . -run Golden -update

-- name: conflictingVersions
SELECT u.line
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[])
     WITH ORDINALITY AS u (embeddable_id, version_number, saved_at, definition_hash, line)
JOIN versions v ON v.project_id = $1 AND v.embeddable_id = u.embeddable_id AND v.version_number = u.version_number
WHERE (v.saved_at, v.definition_hash) IS DISTINCT FROM (u.saved_at, u.definition_hash)
ORDER BY u.line

-- name: countUnreferenced
SELECT count(*) FROM (
SELECT definition_hash FROM definitions WHERE project_id = $1 AND part = 0
EXCEPT SELECT definition_hash FROM embeddables WHERE project_id = $1
EXCEPT SELECT definition_hash FROM versions WHERE project_id = $1) w

-- name: embeddables.chunk
SELECT embeddable_id, title, group_id
FROM embeddables
WHERE project_id = $1 AND embeddable_id > $2 AND embeddable_id <= $3
ORDER BY embeddable_id LIMIT $4

-- name: embeddables.last
SELECT embeddable_id
FROM embeddables
WHERE project_id = $1 AND embeddable_id > $2 AND embeddable_id <= $3
ORDER BY embeddable_id DESC LIMIT 1

-- name: embeddables.nth
SELECT embeddable_id
FROM embeddables
WHERE project_id = $1 AND embeddable_id > $2 AND embeddable_id <= $3
ORDER BY embeddable_id OFFSET $4 LIMIT 2

-- name: embeddablesChanged.chunk
SELECT embeddable_id, title, group_id
FROM embeddables
WHERE project_id = $1 AND changed > $2 AND embeddable_id > $3 AND embeddable_id <= $4
ORDER BY embeddable_id LIMIT $5

-- name: embeddablesChanged.last
SELECT embeddable_id
FROM embeddables
WHERE project_id = $1 AND changed > $2 AND embeddable_id > $3 AND embeddable_id <= $4
ORDER BY embeddable_id DESC LIMIT 1

-- name: embeddablesChanged.nth
SELECT embeddable_id
FROM embeddables
WHERE project_id = $1 AND changed > $2 AND embeddable_id > $3 AND embeddable_id <= $4
ORDER BY embeddable_id OFFSET $5 LIMIT 2

-- name: furtherParts
SELECT content FROM definitions
WHERE project_id = $1 AND definition_hash = decode($2, 'hex') AND part >= $3
ORDER BY part LIMIT $4

-- name: getEmbeddable
SELECT d.content, encode(e.definition_hash, 'hex'), e.title, e.group_id
FROM (
    SELECT title, group_id, definition_hash FROM embeddables
    WHERE project_id = $1 AND embeddable_id = $2
) e
CROSS JOIN LATERAL (
    SELECT d.part, d.content FROM definitions d
    WHERE d.project_id = $1 AND d.definition_hash = e.definition_hash
    ORDER BY d.part LIMIT $3
) d
ORDER BY d.part

-- name: getVersion
SELECT d.content, encode(v.definition_hash, 'hex'), v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
CROSS JOIN (
    SELECT saved_at, definition_hash FROM versions
    WHERE project_id = $1 AND embeddable_id = $2 AND version_number = $3
) v
CROSS JOIN LATERAL (
    SELECT d.part, d.content FROM definitions d
    WHERE d.project_id = $1 AND d.definition_hash = v.definition_hash
    ORDER BY d.part LIMIT $4
) d
ORDER BY d.part

-- name: knownEmbeddables
SELECT count(*)
FROM embeddables
WHERE project_id = $1 AND embeddable_id = ANY($2::text[])

-- name: numbers.add
INSERT INTO embeddable_changes (project_id, number) VALUES ($1, $2) ON CONFLICT (project_id, number) DO NOTHING

-- name: numbers.lock
SELECT number FROM embeddable_changes WHERE project_id = $1 AND number = 0 FOR UPDATE

-- name: numbers.newest
SELECT number FROM embeddable_changes WHERE project_id = $1 ORDER BY number DESC LIMIT 1

-- name: numbers.position
SELECT n.number,
    (SELECT l.number FROM embeddable_changes l WHERE l.project_id = $1 AND l.number <= $2 ORDER BY l.number DESC LIMIT 1),
    (SELECT u.number FROM embeddable_changes u WHERE u.project_id = $1 AND u.number >= $2 ORDER BY u.number LIMIT 1)
FROM embeddable_changes n WHERE n.project_id = $1 ORDER BY n.number DESC LIMIT 1

-- name: putDefinition
INSERT INTO definitions (project_id, definition_hash, part, content)
VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id, definition_hash, part) DO NOTHING
RETURNING 1

-- name: putDefinitions
INSERT INTO definitions (project_id, definition_hash, part, content)
SELECT $1, u.definition_hash, u.part, u.content
FROM unnest($2::bytea[], $3::integer[], $4::text[]) AS u (definition_hash, part, content)
ON CONFLICT (project_id, definition_hash, part) DO NOTHING
RETURNING 1

-- name: putEmbeddable
INSERT INTO embeddables AS e (project_id, embeddable_id, title, group_id, definition_hash, changed, since)
VALUES ($1, $2, $3, $4, $5, $6, $6)
ON CONFLICT (project_id, embeddable_id) DO UPDATE
SET title = excluded.title, group_id = excluded.group_id, definition_hash = excluded.definition_hash,
    changed = excluded.changed
WHERE (excluded.title, excluded.group_id, excluded.definition_hash)
      IS DISTINCT FROM (e.title, e.group_id, e.definition_hash)
RETURNING 1

-- name: putEmbeddables
INSERT INTO embeddables AS e (project_id, embeddable_id, title, group_id, definition_hash, changed, since)
SELECT $1, u.embeddable_id, u.title, u.group_id, u.definition_hash, u.changed, u.changed
FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[])
     AS u (embeddable_id, title, group_id, definition_hash, changed)
ORDER BY u.embeddable_id
ON CONFLICT (project_id, embeddable_id) DO UPDATE
SET title = excluded.title, group_id = excluded.group_id, definition_hash = excluded.definition_hash,
    changed = excluded.changed
WHERE (excluded.title, excluded.group_id, excluded.definition_hash)
      IS DISTINCT FROM (e.title, e.group_id, e.definition_hash)
RETURNING 1

-- name: putVersion
INSERT INTO versions (project_id, embeddable_id, version_number, saved_at, definition_hash, changed)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (project_id, embeddable_id, version_number) DO NOTHING
RETURNING 1

-- name: putVersions
INSERT INTO versions (project_id, embeddable_id, version_number, saved_at, definition_hash, changed)
SELECT $1, u.embeddable_id, u.version_number, u.saved_at, u.definition_hash, u.changed
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[], $6::bigint[])
     WITH ORDINALITY AS u (embeddable_id, version_number, saved_at, definition_hash, changed, line)
ORDER BY u.embeddable_id, u.version_number, u.line
ON CONFLICT (project_id, embeddable_id, version_number) DO NOTHING
RETURNING 1

-- name: removeDefinitions
DELETE FROM definitions
WHERE project_id = $1 AND definition_hash = ANY($2::bytea[])

-- name: someUnreferenced
SELECT definition_hash FROM definitions WHERE project_id = $1 AND part = 0
EXCEPT SELECT definition_hash FROM embeddables WHERE project_id = $1
EXCEPT SELECT definition_hash FROM versions WHERE project_id = $1
ORDER BY definition_hash
LIMIT $2

-- name: touchEmbeddables
UPDATE embeddables e
SET changed = $2
WHERE e.project_id = $1 AND e.embeddable_id = ANY($3::text[]) AND EXISTS (
    SELECT FROM versions v
    WHERE v.project_id = $1 AND v.embeddable_id = e.embeddable_id AND v.changed = $2)

-- name: unreferenced
SELECT definition_hash FROM definitions WHERE project_id = $1 AND part = 0
EXCEPT SELECT definition_hash FROM embeddables WHERE project_id = $1
EXCEPT SELECT definition_hash FROM versions WHERE project_id = $1

-- name: versionParent
SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2

-- name: versionSince
SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2

-- name: versionsAscending.chunk
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number > $3 AND version_number <= $4
ORDER BY version_number LIMIT $5

-- name: versionsAscending.first
SELECT v.version_number, v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
LEFT JOIN (
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number > $3 AND version_number <= $4
ORDER BY version_number LIMIT $5
) v ON true
ORDER BY v.version_number

-- name: versionsAscending.last
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number > $3 AND version_number <= $4
ORDER BY version_number DESC LIMIT 1

-- name: versionsAscending.nth
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number > $3 AND version_number <= $4
ORDER BY version_number OFFSET $5 LIMIT 2

-- name: versionsChangedAscending.chunk
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number > $4 AND version_number <= $5
ORDER BY version_number LIMIT $6

-- name: versionsChangedAscending.first
SELECT v.version_number, v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
LEFT JOIN (
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number > $4 AND version_number <= $5
ORDER BY version_number LIMIT $6
) v ON true
ORDER BY v.version_number

-- name: versionsChangedAscending.last
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number > $4 AND version_number <= $5
ORDER BY version_number DESC LIMIT 1

-- name: versionsChangedAscending.nth
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number > $4 AND version_number <= $5
ORDER BY version_number OFFSET $6 LIMIT 2

-- name: versionsChangedDescending.chunk
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number < $4 AND version_number >= $5
ORDER BY version_number DESC LIMIT $6

-- name: versionsChangedDescending.first
SELECT v.version_number, v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
LEFT JOIN (
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number < $4 AND version_number >= $5
ORDER BY version_number DESC LIMIT $6
) v ON true
ORDER BY v.version_number DESC

-- name: versionsChangedDescending.last
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number < $4 AND version_number >= $5
ORDER BY version_number LIMIT 1

-- name: versionsChangedDescending.nth
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2)) AND version_number < $4 AND version_number >= $5
ORDER BY version_number DESC OFFSET $6 LIMIT 2

-- name: versionsDescending.chunk
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number < $3 AND version_number >= $4
ORDER BY version_number DESC LIMIT $5

-- name: versionsDescending.first
SELECT v.version_number, v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
LEFT JOIN (
SELECT version_number, saved_at
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number < $3 AND version_number >= $4
ORDER BY version_number DESC LIMIT $5
) v ON true
ORDER BY v.version_number DESC

-- name: versionsDescending.last
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number < $3 AND version_number >= $4
ORDER BY version_number LIMIT 1

-- name: versionsDescending.nth
SELECT version_number
FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND version_number < $3 AND version_number >= $4
ORDER BY version_number DESC OFFSET $5 LIMIT 2
