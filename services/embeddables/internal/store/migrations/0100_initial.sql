-- +goose Up

-- Identifiers are compared as bytes (COLLATE "C"): cursors, Go and Postgres order them alike, and an
-- index serves every comparison. Each primary key leads with project_id, so that the tables can be
-- distributed by it.

CREATE TABLE embeddables (
    project_id      text COLLATE "C" NOT NULL,
    embeddable_id   text COLLATE "C" NOT NULL,
    title           text COLLATE "C" NOT NULL,
    group_id        text COLLATE "C" NOT NULL,
    -- SHA-256 of the definition in production.
    definition_hash bytea            NOT NULL CHECK (octet_length(definition_hash) = 32),
    PRIMARY KEY (project_id, embeddable_id)
);

-- A version may come before its embeddable, so it does not refer to it.
CREATE TABLE versions (
    project_id      text COLLATE "C" NOT NULL,
    embeddable_id   text COLLATE "C" NOT NULL,
    version_number  bigint           NOT NULL CHECK (version_number BETWEEN 0 AND 9007199254740991),
    saved_at        timestamptz      NOT NULL,
    definition_hash bytea            NOT NULL CHECK (octet_length(definition_hash) = 32),
    PRIMARY KEY (project_id, embeddable_id, version_number)
);

-- Definitions are JSON as the source sent it. A project stores each content once, because the definition in production
-- is usually that of a version too. They are cut into parts, each compressed alone, so that a service reads megabytes
-- some parts at a time.
CREATE TABLE definitions (
    project_id      text COLLATE "C" NOT NULL,
    definition_hash bytea            NOT NULL,
    part            integer          NOT NULL CHECK (part >= 0),
    content         text COLLATE "C" NOT NULL,
    PRIMARY KEY (project_id, definition_hash, part)
);

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('embeddables', 'project_id', colocate_with => 'none');
        PERFORM create_distributed_table('versions', 'project_id', colocate_with => 'embeddables');
        PERFORM create_distributed_table('definitions', 'project_id', colocate_with => 'embeddables');
    END IF;
END $$;
-- +goose StatementEnd
