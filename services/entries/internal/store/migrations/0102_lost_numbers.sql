-- +goose Up

-- The identity of the database in which the last numbers were taken. Version 0.1.0 inserts rows without it.
ALTER TABLE project_changes ADD COLUMN identity text COLLATE "C";

-- The numbers that the database may have given before it was restored, and does not know any more. Readers whose
-- position is between after and until, both exclusive, have changes that are lost.
CREATE TABLE lost_numbers (
    project_id  text COLLATE "C" NOT NULL,
    after       bigint           NOT NULL,
    until       bigint           NOT NULL,
    recorded_at timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, until, after)
);

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('lost_numbers', 'project_id', colocate_with => 'entries');
    END IF;
END $$;
-- +goose StatementEnd
