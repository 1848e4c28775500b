-- +goose Up

-- The number of the last change. Experiments from before this migration have the number 1, and so have those that
-- version 0.1.0 inserts.
ALTER TABLE experiments ADD COLUMN changed bigint NOT NULL DEFAULT 1;

-- All numbers of changes. The number 0 is the lock of a project.
CREATE TABLE experiment_changes (
    project_id text COLLATE "C" NOT NULL,
    number     bigint           NOT NULL,
    PRIMARY KEY (project_id, number)
);

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('experiment_changes', 'project_id', colocate_with => 'experiments');
    END IF;
END $$;
-- +goose StatementEnd

-- Projects from before this migration begin with a number, too.
INSERT INTO experiment_changes (project_id, number)
SELECT w.project_id, (extract(epoch FROM now()) * 1000000)::bigint
FROM (SELECT DISTINCT project_id FROM experiments) w;
