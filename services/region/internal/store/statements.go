package store

// Every statement names its columns and restricts the table to one project, or getTitles to several. So one index serves
// the statement, even if the table is distributed by project.

const getTitle = `
SELECT title
FROM projects
WHERE project_id = $1`

const getTitles = `
SELECT project_id, title
FROM projects
WHERE project_id = ANY($1)`

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

// knownProjects counts the rows of a project: 1 if the project is stored, and otherwise 0.
const knownProjects = `
SELECT count(*)
FROM projects
WHERE project_id = $1`

// putProject stores a project, and overwrites a stored project whose title or region differs. A record that is equal to
// the stored project changes no row.
const putProject = `
INSERT INTO projects AS p (project_id, title, region)
VALUES ($1, $2, $3)
ON CONFLICT (project_id) DO UPDATE
SET title = excluded.title, region = excluded.region
WHERE p.project_id = $1
  AND (excluded.title, excluded.region) IS DISTINCT FROM (p.title, p.region)`
