-- +goose NO TRANSACTION
-- +goose Up

-- Indexes are created without blocking writers. An interrupted attempt leaves an invalid index, so each attempt drops it
-- first.

DROP INDEX CONCURRENTLY IF EXISTS entries_by_seq;
CREATE INDEX CONCURRENTLY entries_by_seq ON entries (project_id, seq);

DROP INDEX CONCURRENTLY IF EXISTS events_by_seq;
CREATE INDEX CONCURRENTLY events_by_seq ON events (project_id, seq);

-- For the removal of a contact.
DROP INDEX CONCURRENTLY IF EXISTS events_by_contact;
CREATE INDEX CONCURRENTLY events_by_contact ON events (project_id, contact_id, entry_id);

-- No row has a number now. Without these statistics Postgres expects few, and the numbering in the background
-- would read all of a project's rows for each batch.
ANALYZE entries (seq);
ANALYZE events (seq);
