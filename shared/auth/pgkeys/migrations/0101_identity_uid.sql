-- +goose Up

-- The uid of an identity_subject that is a ServiceAccount; key_hash is then the hash of all four. Version 0.1.0 inserts
-- rows without the column.
ALTER TABLE api_keys ADD COLUMN identity_uid text COLLATE "C" NOT NULL DEFAULT '';

-- Citus takes no constraint together with a column.
ALTER TABLE api_keys ADD CONSTRAINT api_keys_identity_uid CHECK (octet_length(identity_uid) <= 512 AND (identity_uid = '' OR identity_subject <> ''));
