-- +goose Up

-- Keys that a program looks after belong to an object of its: owner_id in owner_realm. The program finds
-- by these what it made, also after it died in the middle. All are empty for keys that people look after.
ALTER TABLE api_keys
    ADD COLUMN owner_realm   text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN owner_id      text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN owner_name    text COLLATE "C" NOT NULL DEFAULT '',
    -- The how manieth key of its owner it is, from 1 on.
    ADD COLUMN owner_number  bigint,
    -- What asked for it, in the program's own words.
    ADD COLUMN owner_request text COLLATE "C" NOT NULL DEFAULT '',
    -- When it was first known to be where its users read it; null: it may be that nobody has it.
    ADD COLUMN delivered_at  timestamptz;

-- Apart from their columns, and one a statement: distributed tables take no more at a time.
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_realm_check CHECK (octet_length(owner_realm) <= 256);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_id_check CHECK (octet_length(owner_id) <= 256);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_name_check CHECK (octet_length(owner_name) <= 512);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_number_check CHECK (owner_number > 0);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_request_check CHECK (octet_length(owner_request) <= 1024);

-- One key a number: of two programs that both believe to be the one, one mints.
CREATE UNIQUE INDEX api_keys_owned ON api_keys (project_id, owner_realm, owner_id, owner_number)
    WHERE owner_realm <> '';

-- For the sweep over all that a program looks after, in all projects.
CREATE INDEX api_keys_realm ON api_keys (owner_realm) WHERE owner_realm <> '' AND revoked_at IS NULL;
