-- +goose Up

-- Which shards of the keys (the first byte of their hash) changed what a copy of them must not outlive, by
-- which transaction: so that a process learns of every change by one question, however many keys it holds. A
-- change that no snapshot could show yet is of a transaction that pg_snapshot_xmin does not exceed.
CREATE TABLE api_key_changes (
    xid   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    shard smallint NOT NULL CHECK (shard BETWEEN 0 AND 255),
    -- Of the transaction: numbers come again where a dump is restored.
    began timestamptz NOT NULL DEFAULT now(),
    noted timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (xid, shard, began)
);
CREATE INDEX api_key_changes_noted ON api_key_changes (noted);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION note_api_key_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO api_key_changes (shard) SELECT generate_series(0, 255) ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO api_key_changes (shard)
            SELECT DISTINCT get_byte(hash, 0) FROM unnest(ARRAY[OLD.key_hash, NEW.key_hash]) AS hash WHERE hash IS NOT NULL
            ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Whoever has not asked for an hour begins anew.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION forget_api_key_changes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM api_key_changes WHERE (xid, shard, began) IN (
        SELECT xid, shard, began FROM api_key_changes WHERE noted < clock_timestamp() - interval '1 hour'
        FOR UPDATE SKIP LOCKED);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Notes changes from then on. Distributed tables take no triggers: without them nobody relies on the notes.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION note_api_key_changes() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    CREATE OR REPLACE TRIGGER changed AFTER UPDATE OF project_id, key_hash, key_id, scopes, rate, expires_at, revoked_at OR DELETE ON api_keys
        FOR EACH ROW EXECUTE FUNCTION note_api_key_change();
    CREATE OR REPLACE TRIGGER emptied AFTER TRUNCATE ON api_keys
        FOR EACH STATEMENT EXECUTE FUNCTION note_api_key_change();
    CREATE OR REPLACE TRIGGER forget AFTER UPDATE OF project_id, key_hash, key_id, scopes, rate, expires_at, revoked_at OR DELETE ON api_keys
        FOR EACH STATEMENT EXECUTE FUNCTION forget_api_key_changes();
    -- Also for changes that replication brings.
    ALTER TABLE api_keys ENABLE ALWAYS TRIGGER changed;
    ALTER TABLE api_keys ENABLE ALWAYS TRIGGER emptied;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM note_api_key_changes();
    END IF;
END $$;
-- +goose StatementEnd
