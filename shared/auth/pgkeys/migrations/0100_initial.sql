-- +goose Up

-- The hashes of keys, never the keys. Every look-up names the project, because a key is valid for one.
CREATE TABLE api_keys (
    project_id   text COLLATE "C" NOT NULL CHECK (octet_length(project_id) BETWEEN 1 AND 256),
    key_hash     bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    key_id       text COLLATE "C" NOT NULL CHECK (octet_length(key_id) BETWEEN 1 AND 64),
    name         text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(name) <= 256),
    scopes       text[] COLLATE "C" NOT NULL CHECK (cardinality(scopes) BETWEEN 1 AND 32),
    rate         integer NOT NULL DEFAULT 0 CHECK (rate >= 0),
    is_foreign   boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    -- The lifetime with which the key was minted; null: unlimited. Rotation moves expires_at forward, and gives the
    -- next key the same lifetime.
    lifetime_ms  bigint CHECK (lifetime_ms > 0),
    revoked_at   timestamptz,
    last_used_at timestamptz,
    -- Who has the rights of this row without a key; key_hash is then the hash of these three. All are empty for a key.
    identity_issuer  text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(identity_issuer) <= 512),
    identity_subject text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(identity_subject) <= 512),
    identity_group   text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(identity_group) <= 512),
    CHECK ((identity_issuer <> '')::int = (identity_subject <> '')::int + (identity_group <> '')::int),
    -- Keys that a program manages belong to one of its objects: owner_id in owner_realm. By these the program finds the
    -- keys that it minted, even after a crash. All are empty for keys that people manage.
    owner_realm   text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(owner_realm) <= 256),
    owner_id      text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(owner_id) <= 256),
    owner_name    text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(owner_name) <= 512),
    -- The number of the key among those of its owner, from 1.
    owner_number  bigint CHECK (owner_number > 0),
    -- The reason for the key, in a form of the program's own.
    owner_request text COLLATE "C" NOT NULL DEFAULT '' CHECK (octet_length(owner_request) <= 1024),
    -- When the program first saw it where its users read it; null: perhaps nobody has it.
    delivered_at  timestamptz,
    PRIMARY KEY (project_id, key_hash),
    UNIQUE (project_id, key_id)
);

-- For the set of imported keys in each process, the only query over all projects.
CREATE INDEX api_keys_foreign ON api_keys (created_at) WHERE is_foreign;

-- For the projects of one key or identity.
CREATE INDEX api_keys_hash ON api_keys (key_hash, project_id);

-- One key for each number: of two programs that both believe to be the leader, one mints.
CREATE UNIQUE INDEX api_keys_owned ON api_keys (project_id, owner_realm, owner_id, owner_number)
    WHERE owner_realm <> '';

-- For the sweep over all keys that a program manages, in all projects.
CREATE INDEX api_keys_realm ON api_keys (owner_realm) WHERE owner_realm <> '' AND revoked_at IS NULL;

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('api_keys', 'project_id', colocate_with => 'none');
    END IF;
END $$;
-- +goose StatementEnd
