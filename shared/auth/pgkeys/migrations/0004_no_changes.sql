-- +goose Up

-- Processes learn of changed keys through Redis, and in any case when their copies expire. CASCADE drops the triggers.
DROP FUNCTION note_api_key_changes();
DROP FUNCTION note_api_key_change() CASCADE;
DROP FUNCTION forget_api_key_changes() CASCADE;
DROP TABLE api_key_changes;
