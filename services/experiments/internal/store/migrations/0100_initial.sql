-- +goose Up

-- Identifiers are compared as bytes (COLLATE "C"): cursors, Go and Postgres order them alike, and an
-- index serves every comparison. Each primary key and index leads with project_id, so that the tables
-- can be distributed by it.

CREATE TABLE experiments (
    project_id             text COLLATE "C" NOT NULL,
    experiment_id          text COLLATE "C" NOT NULL,
    flow_id                text COLLATE "C" NOT NULL,
    name                   text COLLATE "C",
    hypothesis             text COLLATE "C",
    -- JSON arrays of strings, as the API returns them; flow_ids too.
    impact_metrics         text COLLATE "C",
    no_impact_metrics      text COLLATE "C",
    created_at             timestamptz      NOT NULL,
    updated_at             timestamptz      NOT NULL,
    observations           text COLLATE "C",
    outcome                text COLLATE "C",
    -- JSON as the source sent it; variants too.
    attachments            text COLLATE "C",
    variants               text COLLATE "C",
    flow_ids               text COLLATE "C",
    paused_showing_variant text COLLATE "C",
    winner_variant         text COLLATE "C",
    status                 text COLLATE "C"
        CHECK (status IN ('draft', 'running', 'paused', 'winner_picked', 'completed', 'discarded')),
    -- The number of status changes, including the first status: the number of the last change.
    changes                bigint           NOT NULL,
    PRIMARY KEY (project_id, experiment_id)
);

CREATE INDEX experiments_by_created_at ON experiments (project_id, created_at, experiment_id);
CREATE INDEX experiments_by_status ON experiments (project_id, status, created_at, experiment_id);

CREATE TABLE status_changes (
    project_id    text COLLATE "C" NOT NULL,
    experiment_id text COLLATE "C" NOT NULL,
    change        bigint           NOT NULL,
    status        text COLLATE "C",
    -- When the source changed it: updated_at of the record with the change.
    changed_at    timestamptz      NOT NULL,
    recorded_at   timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, experiment_id, change)
);

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('experiments', 'project_id', colocate_with => 'none');
        PERFORM create_distributed_table('status_changes', 'project_id', colocate_with => 'experiments');
    END IF;
END $$;
-- +goose StatementEnd
