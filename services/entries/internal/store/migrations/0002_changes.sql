-- +goose Up

-- The change feed numbers every change of a project. A transaction that stores or removes locks the project's row here
-- first, so that numbers become visible in their order.
CREATE TABLE project_changes (
    project_id text COLLATE "C" PRIMARY KEY,
    -- The last number that a transaction took. It is at least the time of that transaction in microseconds, so that a
    -- restored backup never gives a number again.
    last_seq   bigint           NOT NULL,
    -- False while rows from before the feed have no number.
    numbered   boolean          NOT NULL DEFAULT true
);

-- What was removed. It holds no personal data.
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

-- Neither a new column without a default nor a constraint that is NOT VALID reads the rows. The constraint refuses
-- rows of the version before, which has no numbers: see pgdb.NewerVersion.
ALTER TABLE entries ADD COLUMN seq bigint;
ALTER TABLE entries ADD CONSTRAINT entries_newer_version CHECK (seq IS NOT NULL) NOT VALID;
ALTER TABLE events ADD COLUMN seq bigint;
ALTER TABLE events ADD CONSTRAINT events_newer_version CHECK (seq IS NOT NULL) NOT VALID;

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('project_changes', 'project_id', colocate_with => 'entries');
        PERFORM create_distributed_table('removals', 'project_id', colocate_with => 'entries');
    END IF;
END $$;
-- +goose StatementEnd
