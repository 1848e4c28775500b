-- +goose Up

-- 0103 replaced these two. To drop an index takes a lock that reads wait for, so no index is made in this transaction.
DROP INDEX progress_by_created_at;
DROP INDEX progress_by_embeddable;
