-- +goose Up

-- Identifiers are compared as bytes (COLLATE "C"), alike in Go and Postgres. The primary key leads with
-- project_id, so that the table can be distributed by it.

CREATE TABLE projects (
    project_id text COLLATE "C" NOT NULL,
    title      text COLLATE "C" NOT NULL,
    -- A zone of the tz database, or null.
    region     text COLLATE "C",
    PRIMARY KEY (project_id)
);

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('projects', 'project_id', colocate_with => 'none');
    END IF;
END $$;
-- +goose StatementEnd
