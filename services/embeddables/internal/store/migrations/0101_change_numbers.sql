-- +goose Up

-- The number of the last change; an embeddable's versions and definition belong to it. Records from before this migration
-- have the number 1, and so have those that version 0.1.0 inserts.
ALTER TABLE embeddables ADD COLUMN changed bigint NOT NULL DEFAULT 1;
ALTER TABLE versions ADD COLUMN changed bigint NOT NULL DEFAULT 1;
-- The number of the change that inserted the embeddable. Versions may be older, but are readable only since then.
ALTER TABLE embeddables ADD COLUMN since bigint NOT NULL DEFAULT 1;

-- All numbers of changes. The number 0 is the lock of a project.
CREATE TABLE embeddable_changes (
    project_id text COLLATE "C" NOT NULL,
    number     bigint           NOT NULL,
    PRIMARY KEY (project_id, number)
);

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('embeddable_changes', 'project_id', colocate_with => 'embeddables');
    END IF;
END $$;
-- +goose StatementEnd

-- Projects from before this migration begin with a number, too.
INSERT INTO embeddable_changes (project_id, number)
SELECT w.project_id, (extract(epoch FROM now()) * 1000000)::bigint
FROM (SELECT project_id FROM embeddables UNION SELECT project_id FROM versions) w;
