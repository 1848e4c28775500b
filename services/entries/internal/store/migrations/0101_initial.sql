-- +goose Up

-- Identifiers are compared as bytes (COLLATE "C"): cursors, Go and Postgres order them alike, and an
-- index serves every comparison. Each primary key and index leads with project_id, so that the tables
-- can be distributed by it.

CREATE TABLE entries (
    project_id    text COLLATE "C" NOT NULL,
    entry_id      text COLLATE "C" NOT NULL,
    group_id      text COLLATE "C" NOT NULL,
    embeddable_id text COLLATE "C" NOT NULL,
    contact_id    text COLLATE "C" NOT NULL,
    created_at    timestamptz      NOT NULL,
    updated_at    timestamptz      NOT NULL,
    -- JSON as the source sent it: not jsonb, which would rewrite it.
    entry_data    text COLLATE "C" NOT NULL,
    -- The number of the entry's last change. The numbers are those of project_changes.
    seq           bigint           NOT NULL,
    -- Whether the row has replaced an earlier one of the entry. The statement that writes it returns this.
    replaced      boolean          NOT NULL DEFAULT false,
    PRIMARY KEY (project_id, entry_id)
);

CREATE INDEX entries_by_updated_at ON entries (project_id, updated_at, entry_id);

-- updated_at is included so that a list by creation with filters on it finds its last key in the index alone, and
-- embeddable_id so that the insights count a period in the index alone.
CREATE INDEX entries_by_created_at ON entries (project_id, created_at, entry_id) INCLUDE (updated_at, embeddable_id);

-- For lists of a contact's or an embeddable's entries, in the order of updates.
CREATE INDEX entries_by_contact ON entries (project_id, contact_id, updated_at, entry_id);
CREATE INDEX entries_by_embeddable ON entries (project_id, embeddable_id, updated_at, entry_id);

CREATE INDEX entries_by_seq ON entries (project_id, seq);

CREATE TABLE events (
    project_id                text COLLATE "C" NOT NULL,
    -- The identity of the event: a digest of its event_id if it has one, else of all its fields.
    event_key                 bytea            NOT NULL CHECK (octet_length(event_key) = 16),
    -- The order of arrival: it breaks ties between equal timestamps.
    arrival                   bigint           NOT NULL GENERATED ALWAYS AS IDENTITY,
    entry_id                  text COLLATE "C" NOT NULL,
    contact_id                text COLLATE "C" NOT NULL,
    group_id                  text COLLATE "C" NOT NULL,
    embeddable_id             text COLLATE "C" NOT NULL,
    embeddable_version_number bigint,
    "timestamp"               timestamptz      NOT NULL,
    page_id                   text COLLATE "C",
    page_key                  text COLLATE "C",
    page_index                bigint,
    max_page_id               text COLLATE "C",
    max_page_key              text COLLATE "C",
    max_page_index            bigint,
    total_pages               bigint,
    event_type                text COLLATE "C" NOT NULL,
    view_type                 text COLLATE "C",
    custom_event_name         text COLLATE "C",
    -- JSON as the source sent it.
    custom_event_props        text COLLATE "C",
    url                       text COLLATE "C",
    event_id                  text COLLATE "C",
    seq                       bigint           NOT NULL,
    PRIMARY KEY (project_id, event_key),
    -- A page view has all fields of its page, so that the API needs no null there.
    CHECK (event_type <> 'flowpage.viewed'
        OR (page_id IS NOT NULL AND page_key IS NOT NULL AND page_index IS NOT NULL))
);

CREATE INDEX events_by_entry ON events (project_id, entry_id, "timestamp", arrival);
CREATE INDEX events_by_seq ON events (project_id, seq);

-- For the removal of a contact.
CREATE INDEX events_by_contact ON events (project_id, contact_id, entry_id);

-- The change feed numbers every change of a project. A transaction that stores or removes locks the project's row here
-- first, so that numbers become visible in their order.
CREATE TABLE project_changes (
    project_id text COLLATE "C" PRIMARY KEY,
    -- The last number that a transaction took. It is at least the time of that transaction in microseconds, so that a
    -- restored backup never uses a number twice.
    last_seq   bigint           NOT NULL
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

-- How far each entry with page views came. The transaction that stores an entry or its page views writes it, so that the
-- insights need not pass a row for each event.
CREATE TABLE progress (
    project_id      text COLLATE "C" NOT NULL,
    entry_id        text COLLATE "C" NOT NULL,
    -- 0: all views of the entry. One with views of several versions also has a part for each version.
    part            bigint           NOT NULL,
    version         bigint,
    -- The entry has views of several versions.
    several         boolean          NOT NULL,
    -- Those of the entry; null if it never came.
    embeddable_id   text COLLATE "C",
    created_at      timestamptz,
    updated_at      timestamptz,
    -- The greatest page index. ended: it is the last page.
    furthest        bigint           NOT NULL,
    ended           boolean          NOT NULL,
    -- Tenths of a second from the first view to the first one of the last page.
    completed_after bigint,
    -- The pages, each with the tenths of a second from its first view to the next view of another page (insight.Cells).
    cells           bytea            NOT NULL,
    -- For further views, in Unix microseconds: the times of the first and the latest view, and of the first view of the page
    -- whose cell has no time yet.
    first_view      bigint           NOT NULL,
    latest_view     bigint           NOT NULL,
    waits           bigint,
    PRIMARY KEY (project_id, entry_id, part)
) WITH (fillfactor = 90); -- room for the updates of an entry's first minutes

-- For the insights of a period. Postgres counts in the first index alone. The second one finds the few entries of one
-- embeddable among those of many.
CREATE INDEX progress_by_created_at ON progress (project_id, created_at) INCLUDE (embeddable_id, part, version, several, completed_after);
CREATE INDEX progress_by_embeddable ON progress (project_id, embeddable_id, created_at);

-- Parses entry_data. Returns an object without keys if entry_data is no object. The cost makes Postgres parse in parallel,
-- which Postgres does not for a cast.
-- +goose StatementBegin
CREATE FUNCTION parse_entry(entry_data text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS $$
DECLARE
    data jsonb := entry_data::jsonb;
BEGIN
    RETURN CASE jsonb_typeof(data) WHEN 'object' THEN data ELSE '{}' END;
END $$;
-- +goose StatementEnd

-- Does the same in one process. Returns null for what Postgres cannot store as jsonb, such as \u0000.
-- +goose StatementBegin
CREATE FUNCTION entry_json(entry_data text) RETURNS jsonb LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN parse_entry(entry_data);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('entries', 'project_id', colocate_with => 'none');
        PERFORM create_distributed_table('events', 'project_id', colocate_with => 'entries');
        PERFORM create_distributed_table('project_changes', 'project_id', colocate_with => 'entries');
        PERFORM create_distributed_table('removals', 'project_id', colocate_with => 'entries');
        PERFORM create_distributed_table('progress', 'project_id', colocate_with => 'entries');
        PERFORM create_distributed_function('parse_entry(text)');
        PERFORM create_distributed_function('entry_json(text)');
    END IF;
END $$;
-- +goose StatementEnd
