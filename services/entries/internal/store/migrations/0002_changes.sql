-- +goose Up

-- The change feed numbers every change of a project. A transaction that stores or removes locks the project's row here
-- first, so that numbers become visible in their order.
CREATE TABLE project_changes (
    project_id text COLLATE "C" PRIMARY KEY,
    -- The last number that a transaction took. It is at least the time of that transaction in microseconds, so that a
    -- restored backup never uses a number twice.
    last_seq   bigint           NOT NULL,
    -- False lists the project for the service, which numbers rows from before the feed in the background.
    numbered   boolean          NOT NULL DEFAULT true
);

-- The removed entries. The table has no personal data.
CREATE TABLE removals (
    project_id text COLLATE "C" NOT NULL,
    entry_id   text COLLATE "C" NOT NULL,
    seq        bigint           NOT NULL,
    removed_at timestamptz      NOT NULL,
    -- Ingest refuses later data for an entry that was erased. One that was purged may come back.
    reason     text             NOT NULL CHECK (reason IN ('erased', 'purged')),
    PRIMARY KEY (project_id, entry_id)
);

CREATE INDEX removals_by_seq ON removals (project_id, seq);

-- Inserts of the previous version have no number. They fail as if a lock were held, so that its processes answer 503
-- until they are replaced, and senders repeat their requests.
-- +goose StatementBegin
CREATE FUNCTION refuse_unnumbered() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows without a change number are of a version before that of this schema' USING ERRCODE = 'lock_not_available';
END $$;
-- +goose StatementEnd

-- Neither a new column without a default nor a constraint that is NOT VALID reads the rows. These statements wait at
-- most a second for readers and writers, because others wait meanwhile; then the migration starts again.
SET LOCAL lock_timeout = '1s';
ALTER TABLE entries ADD COLUMN seq bigint;
ALTER TABLE entries ADD CONSTRAINT entries_numbered CHECK (seq IS NOT NULL OR refuse_unnumbered()) NOT VALID;
ALTER TABLE events ADD COLUMN seq bigint;
ALTER TABLE events ADD CONSTRAINT events_numbered CHECK (seq IS NOT NULL OR refuse_unnumbered()) NOT VALID;

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('project_changes', 'project_id', colocate_with => 'entries');
        PERFORM create_distributed_table('removals', 'project_id', colocate_with => 'entries');
    END IF;
END $$;
-- +goose StatementEnd
