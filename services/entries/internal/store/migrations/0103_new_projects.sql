-- +goose Up

-- Postgres expects one row of a project that its statistics do not have. For the rows of one entry, Postgres then takes
-- any index that begins with the project, and reads all rows of the project. So the statistics follow a number of changes.
-- By default they follow a tenth of the table, which a new project may take weeks to reach.
ALTER TABLE entries SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000);
ALTER TABLE progress SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000);
ALTER TABLE events SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);

-- Insights read the progress of stored entries alone, which is the condition of these two indexes. A statement that reads
-- the progress of one entry does not have this condition. So only the primary key serves it, without statistics, too.
CREATE INDEX stored_progress_by_created_at ON progress (project_id, created_at) INCLUDE (embeddable_id, part, version, several, completed_after)
    WHERE embeddable_id IS NOT NULL;
CREATE INDEX stored_progress_by_embeddable ON progress (project_id, embeddable_id, created_at) WHERE embeddable_id IS NOT NULL;
