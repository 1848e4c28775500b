-- +goose NO TRANSACTION
-- +goose Up

-- For lists of a contact's or an embeddable's entries, in the order of updates. As in 0003, indexes are created
-- without blocking writers, and each attempt first drops the index of an interrupted one.

DROP INDEX CONCURRENTLY IF EXISTS entries_by_contact;
CREATE INDEX CONCURRENTLY entries_by_contact ON entries (project_id, contact_id, updated_at, entry_id);

DROP INDEX CONCURRENTLY IF EXISTS entries_by_embeddable;
CREATE INDEX CONCURRENTLY entries_by_embeddable ON entries (project_id, embeddable_id, updated_at, entry_id);
