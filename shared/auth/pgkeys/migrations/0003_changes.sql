-- +goose Up

-- The shards of keys (the first byte of their hash) with changes that invalidate copies, by transaction. So a process
-- finds every change by one query, however many keys it has cached. A change that no snapshot could show yet belongs to
-- a transaction that is not before the snapshot's xmin.
CREATE TABLE api_key_changes (
    xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    shard   smallint NOT NULL CHECK (shard BETWEEN 0 AND 255),
    -- Of the transaction: a restored dump may repeat numbers.
    began   timestamptz NOT NULL DEFAULT now(),
    noted   timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Transactions before it had ended when this row was written.
    horizon xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    PRIMARY KEY (xid, shard, began)
);
CREATE INDEX api_key_changes_noted ON api_key_changes (noted);

-- The functions run with the rights of the role that changes a key, and find tables in this schema only.
-- +goose StatementBegin
DO $outer$ BEGIN
    EXECUTE format($format$
CREATE OR REPLACE FUNCTION note_api_key_change() RETURNS trigger LANGUAGE plpgsql SET search_path = %1$I, pg_temp AS $$
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

-- Rows that were visible for an hour are deleted: processes without a query since then start again.
CREATE OR REPLACE FUNCTION forget_api_key_changes() RETURNS trigger LANGUAGE plpgsql SET search_path = %1$I, pg_temp AS $$
BEGIN
    DELETE FROM api_key_changes WHERE (xid, shard, began) IN (
        SELECT xid, shard, began FROM api_key_changes
        WHERE xid < (SELECT max(horizon) FROM api_key_changes WHERE noted < clock_timestamp() - interval '1 hour')
        FOR UPDATE SKIP LOCKED);
    RETURN NULL;
END $$;

-- Records changes from now on. Distributed tables support no triggers; without them nobody relies on the rows.
CREATE OR REPLACE FUNCTION note_api_key_changes() RETURNS void LANGUAGE plpgsql SET search_path = %1$I, pg_temp AS $$
BEGIN
    CREATE OR REPLACE TRIGGER changed AFTER UPDATE ON api_keys FOR EACH ROW
        WHEN ((OLD.project_id, OLD.key_hash, OLD.key_id, OLD.scopes, OLD.rate, OLD.expires_at, OLD.revoked_at)
            IS DISTINCT FROM (NEW.project_id, NEW.key_hash, NEW.key_id, NEW.scopes, NEW.rate, NEW.expires_at, NEW.revoked_at))
        EXECUTE FUNCTION note_api_key_change();
    CREATE OR REPLACE TRIGGER deleted AFTER DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION note_api_key_change();
    CREATE OR REPLACE TRIGGER emptied AFTER TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION note_api_key_change();
    CREATE OR REPLACE TRIGGER forget AFTER UPDATE OF scopes, rate, expires_at, revoked_at OR DELETE ON api_keys
        FOR EACH STATEMENT EXECUTE FUNCTION forget_api_key_changes();
    -- Also for changes by replication.
    ALTER TABLE api_keys ENABLE ALWAYS TRIGGER changed;
    ALTER TABLE api_keys ENABLE ALWAYS TRIGGER deleted;
    ALTER TABLE api_keys ENABLE ALWAYS TRIGGER emptied;
END $$;
$format$, current_schema());
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM note_api_key_changes();
    END IF;
END $outer$;
-- +goose StatementEnd
