package pgkeys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// Store looks keys up in Postgres, with the reader role. Other implementations of [auth.Store], such as the cache in
// Redis, ask a Store.
type Store struct {
	pool *pgdb.Pool
}

var (
	_ auth.Store         = (*Store)(nil)
	_ auth.ForeignSource = (*Store)(nil)
	_ auth.UseWriter     = (*Store)(nil)
)

// NewStore returns a Store that reads through pool. The caller closes pool.
func NewStore(pool *pgdb.Pool) *Store { return &Store{pool: pool} }

const lookup = `SELECT ` + columns + ` FROM api_keys WHERE project_id = $1 AND key_hash = $2`

// Lookup returns the record of the project's key with that hash, or [auth.ErrUnknown]. Other errors are faults as
// [pgdb.Fault] returns them.
func (s *Store) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	var r auth.Record
	err := s.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		if !rows.Next() {
			return auth.ErrUnknown
		}
		r, err = scan(rows)
		return err
	}, lookup, projectID, h[:])
	switch {
	case errors.Is(err, auth.ErrUnknown):
		return auth.Record{}, auth.ErrUnknown
	case err != nil:
		return auth.Record{}, fmt.Errorf("look up a key in postgres: %w", err)
	}
	return r, nil
}

const grants = `SELECT ` + columns + ` FROM api_keys WHERE project_id = $1 AND key_hash = ANY($2)`

// Grants implements [auth.Store]. Errors are faults as [pgdb.Fault] returns them.
func (s *Store) Grants(ctx context.Context, projectID string, hashes []auth.Hash) ([]auth.Record, error) {
	var found []auth.Record
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		found = nil
		for rows.Next() {
			r, err := scan(rows)
			if err != nil {
				return err
			}
			found = append(found, r)
		}
		return nil
	}, grants, projectID, bytesOf(hashes))
	if err != nil {
		return nil, fmt.Errorf("look up an identity in postgres: %w", err)
	}
	return found, nil
}

// projects reads the records of one key or identity in all projects. Only the statements projects, realm and foreign
// read the keys of all projects.
const projects = `SELECT ` + columns + ` FROM api_keys WHERE key_hash = ANY($1) ORDER BY project_id, key_id`

// EachProject implements [auth.Store]. Errors are faults as [pgdb.Fault] returns them.
func (s *Store) EachProject(ctx context.Context, hashes []auth.Hash, do func(auth.Record) bool) error {
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scan(rows)
			if err != nil {
				return err
			}
			if !do(r) {
				return nil
			}
		}
		return nil
	}, projects, bytesOf(hashes))
	if err != nil {
		return fmt.Errorf("list the projects of a key: %w", err)
	}
	return nil
}

func bytesOf(hashes []auth.Hash) [][]byte {
	all := make([][]byte, len(hashes))
	for i := range hashes {
		all[i] = hashes[i][:]
	}
	return all
}

const foreign = `SELECT key_hash FROM api_keys
	WHERE is_foreign AND created_at >= $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`

const clock = `SELECT now()`

// ForeignHashes implements [auth.ForeignSource]. The returned time is the database's clock from before the read.
func (s *Store) ForeignHashes(ctx context.Context, since time.Time, add func(auth.Hash)) (time.Time, error) {
	var upTo time.Time
	if err := s.pool.QueryRow(ctx, []any{&upTo}, clock); err != nil {
		return time.Time{}, fmt.Errorf("read foreign keys: %w", err)
	}
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		var hash []byte
		for rows.Next() {
			if err := rows.Scan(&hash); err != nil {
				return err
			}
			add(auth.Hash(hash)) // a CHECK of the table guarantees 32 bytes
		}
		return nil
	}, foreign, since)
	if err != nil {
		return time.Time{}, fmt.Errorf("read foreign keys: %w", err)
	}
	return upTo, nil
}

const use = `UPDATE api_keys SET last_used_at = $3
	WHERE project_id = $1 AND key_id = ANY($2) AND (last_used_at IS NULL OR last_used_at < $3)`

// usesTogether is how many projects' uses one transaction writes if the database is not distributed. With one commit
// for each project, thousands of commits would take longer than the time between two flushes.
const usesTogether = 200

// WriteUses implements [auth.UseWriter]. WriteUses runs one statement for each project, which writes the latest of the
// project's uses for all keys in these uses. The uses are usually no more than a flush apart, so last_used_at is exact
// to about a minute. Uses that were kept after a failed flush are older. In a distributed database each statement is a
// transaction of its own.
func (s *Store) WriteUses(ctx context.Context, uses []auth.Use) error {
	together := usesTogether
	if s.pool.Distributed() {
		together = 1
	}
	var errs []error
	for len(uses) > 0 && ctx.Err() == nil {
		batch := &pgx.Batch{}
		for len(uses) > 0 && batch.Len() < together {
			n := 1
			for n < len(uses) && uses[n].ProjectID == uses[0].ProjectID {
				n++
			}
			keys, latest := make([]string, n), time.Time{}
			for i, u := range uses[:n] {
				keys[i] = u.KeyID
				if u.At.After(latest) {
					latest = u.At
				}
			}
			batch.Queue(use, uses[0].ProjectID, keys, latest)
			uses = uses[n:]
		}
		errs = append(errs, s.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return tx.SendBatch(ctx, batch).Close()
		}))
	}
	return errors.Join(append(errs, ctx.Err())...)
}
