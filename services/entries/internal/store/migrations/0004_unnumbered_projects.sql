-- +goose NO TRANSACTION
-- +goose Up

-- The projects whose rows are from before the feed. The service numbers these rows in the background. Each statement
-- is a transaction of its own: it locks the rows of projects, which writers wait for.
INSERT INTO project_changes (project_id, last_seq, numbered)
SELECT project_id, 0, false FROM entries WHERE seq IS NULL GROUP BY project_id
ON CONFLICT (project_id) DO UPDATE SET numbered = false;

INSERT INTO project_changes (project_id, last_seq, numbered)
SELECT project_id, 0, false FROM events WHERE seq IS NULL GROUP BY project_id
ON CONFLICT (project_id) DO UPDATE SET numbered = false;
