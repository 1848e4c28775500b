package store

// Every statement names its columns and its project, in each table and subquery of it: it is served by
// one index of one project, on plain Postgres and where tables are distributed by project.

// Of the list of embeddables. Their parameters: project, start of the range (not included), its end
// (included), then limit or offset.
const embeddableRange = `project_id = $1 AND embeddable_id > $2 AND embeddable_id <= $3`

const embeddables = `
SELECT embeddable_id, title, group_id FROM embeddables
WHERE ` + embeddableRange + `
ORDER BY embeddable_id LIMIT $4`

const nthEmbeddable = `
SELECT embeddable_id FROM embeddables
WHERE ` + embeddableRange + `
ORDER BY embeddable_id OFFSET $4 LIMIT 2`

const lastEmbeddable = `
SELECT embeddable_id FROM embeddables
WHERE ` + embeddableRange + `
ORDER BY embeddable_id DESC LIMIT 1`

// Of a list of versions. Their parameters: project, embeddable, start of the range (not included), its
// end (included), then limit or offset.
const (
	versionsAscendingRange  = `version_number > $3 AND version_number <= $4`
	versionsDescendingRange = `version_number < $3 AND version_number >= $4`
)

// The first chunk of an embeddable's versions: no row when there is no such embeddable, and one with
// nothing in it when the embeddable has no version.
const firstVersionsAscending = `
SELECT v.version_number, v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
LEFT JOIN (
    SELECT version_number, saved_at FROM versions
    WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsAscendingRange + `
    ORDER BY version_number LIMIT $5
) v ON true
ORDER BY v.version_number`

const firstVersionsDescending = `
SELECT v.version_number, v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
LEFT JOIN (
    SELECT version_number, saved_at FROM versions
    WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsDescendingRange + `
    ORDER BY version_number DESC LIMIT $5
) v ON true
ORDER BY v.version_number DESC`

const versionsAscending = `
SELECT version_number, saved_at FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsAscendingRange + `
ORDER BY version_number LIMIT $5`

const versionsDescending = `
SELECT version_number, saved_at FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsDescendingRange + `
ORDER BY version_number DESC LIMIT $5`

const nthVersionAscending = `
SELECT version_number FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsAscendingRange + `
ORDER BY version_number OFFSET $5 LIMIT 2`

const nthVersionDescending = `
SELECT version_number FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsDescendingRange + `
ORDER BY version_number DESC OFFSET $5 LIMIT 2`

const lastVersionAscending = `
SELECT version_number FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsAscendingRange + `
ORDER BY version_number DESC LIMIT 1`

const lastVersionDescending = `
SELECT version_number FROM versions
WHERE project_id = $1 AND embeddable_id = $2 AND ` + versionsDescendingRange + `
ORDER BY version_number LIMIT 1`

// A record with the first parts of its definition, one a row. Their last parameter: how many. The limit
// within keeps the definitions of the project from being read whole for a join. The hash is text, as
// bytes look otherwise where statements are not prepared.
const getEmbeddable = `
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
ORDER BY d.part`

const getVersion = `
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
ORDER BY d.part`

const furtherParts = `
SELECT content FROM definitions
WHERE project_id = $1 AND definition_hash = decode($2, 'hex') AND part >= $3
ORDER BY part LIMIT $4`

// Statements that store return a row for each record that they stored. What they say of a conflict has no
// parameter: distributed tables take none there. Each is there twice, as pgrecord.Put wants it.

const insertEmbeddables = `
INSERT INTO embeddables AS e (project_id, embeddable_id, title, group_id, definition_hash)`

// The last sent wins.
const unlessSame = `
ON CONFLICT (project_id, embeddable_id) DO UPDATE
SET title = excluded.title, group_id = excluded.group_id, definition_hash = excluded.definition_hash
WHERE (excluded.title, excluded.group_id, excluded.definition_hash)
      IS DISTINCT FROM (e.title, e.group_id, e.definition_hash)
RETURNING 1`

const putEmbeddables = insertEmbeddables + `
SELECT $1, u.embeddable_id, u.title, u.group_id, u.definition_hash
FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) AS u (embeddable_id, title, group_id, definition_hash)
ORDER BY u.embeddable_id` + unlessSame

const putEmbeddable = insertEmbeddables + `
VALUES ($1, $2, $3, $4, $5)` + unlessSame

const insertVersions = `
INSERT INTO versions (project_id, embeddable_id, version_number, saved_at, definition_hash)`

// Of those with the same number the first is stored.
const unlessNumbered = `
ON CONFLICT (project_id, embeddable_id, version_number) DO NOTHING
RETURNING 1`

const putVersions = insertVersions + `
SELECT $1, u.embeddable_id, u.version_number, u.saved_at, u.definition_hash
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[])
     WITH ORDINALITY AS u (embeddable_id, version_number, saved_at, definition_hash, line)
ORDER BY u.embeddable_id, u.version_number, u.line` + unlessNumbered

const putVersion = insertVersions + `
VALUES ($1, $2, $3, $4, $5)` + unlessNumbered

// Which of the versions given say another thing than the stored ones, counted from 1.
const conflictingVersions = `
SELECT u.line
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[])
     WITH ORDINALITY AS u (embeddable_id, version_number, saved_at, definition_hash, line)
JOIN versions v ON v.project_id = $1 AND v.embeddable_id = u.embeddable_id AND v.version_number = u.version_number
WHERE (v.saved_at, v.definition_hash) IS DISTINCT FROM (u.saved_at, u.definition_hash)
ORDER BY u.line`

const insertDefinitions = `
INSERT INTO definitions (project_id, definition_hash, part, content)`

const unlessKnown = `
ON CONFLICT (project_id, definition_hash, part) DO NOTHING
RETURNING 1`

const putDefinitions = insertDefinitions + `
SELECT $1, u.definition_hash, u.part, u.content
FROM unnest($2::bytea[], $3::integer[], $4::text[]) AS u (definition_hash, part, content)` + unlessKnown

const putDefinition = insertDefinitions + `
VALUES ($1, $2, $3, $4)` + unlessKnown
