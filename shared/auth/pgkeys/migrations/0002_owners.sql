-- +goose Up

-- Keys that a program manages belong to one of its objects: owner_id in owner_realm. By these the program finds the
-- keys that it minted, even after a crash. All are empty for keys that people manage.
ALTER TABLE api_keys
    ADD COLUMN owner_realm   text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN owner_id      text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN owner_name    text COLLATE "C" NOT NULL DEFAULT '',
    -- The number of the key among those of its owner, from 1.
    ADD COLUMN owner_number  bigint,
    -- The reason for the key, in a form of the program's own.
    ADD COLUMN owner_request text COLLATE "C" NOT NULL DEFAULT '',
    -- When the program first saw it where its users read it; null: perhaps nobody has it.
    ADD COLUMN delivered_at  timestamptz;

-- Constraints apart from their columns, and one a statement: distributed tables support no more.
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_realm_check CHECK (octet_length(owner_realm) <= 256);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_id_check CHECK (octet_length(owner_id) <= 256);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_name_check CHECK (octet_length(owner_name) <= 512);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_number_check CHECK (owner_number > 0);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner_request_check CHECK (octet_length(owner_request) <= 1024);

-- One key for each number: of two programs that both believe to be the leader, one mints.
CREATE UNIQUE INDEX api_keys_owned ON api_keys (project_id, owner_realm, owner_id, owner_number)
    WHERE owner_realm <> '';

-- For the sweep over all keys that a program manages, in all projects.
CREATE INDEX api_keys_realm ON api_keys (owner_realm) WHERE owner_realm <> '' AND revoked_at IS NULL;
