package store

// Every statement names its columns and its project. So one index of the project serves it, even if tables are
// distributed by project.

const getTitle = `
SELECT title
FROM projects
WHERE project_id = $1`

const getRegion = `
SELECT region
FROM projects
WHERE project_id = $1`

const getProject = `
SELECT title, region
FROM projects
WHERE project_id = $1`

const deleteProject = `
DELETE FROM projects
WHERE project_id = $1`

// knownProjects counts the stored project.
const knownProjects = `
SELECT count(*)
FROM projects
WHERE project_id = $1`

// The record that was sent last is kept. An equal record changes nothing.
const putProject = `
INSERT INTO projects AS p (project_id, title, region)
VALUES ($1, $2, $3)
ON CONFLICT (project_id) DO UPDATE
SET title = excluded.title, region = excluded.region
WHERE p.project_id = $1
  AND (excluded.title, excluded.region) IS DISTINCT FROM (p.title, p.region)`
