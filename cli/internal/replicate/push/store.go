package push

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/durable"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/cli/internal/replicate/postgres"
)

// store keeps a state for one process at a time.
type store interface {
	// open locks the state until close, and returns it; nil if there is none. It fails if another process has the lock.
	open(ctx context.Context) ([]byte, error)
	// save replaces the state, whole or not at all.
	save(ctx context.Context, data []byte) error
	close() error
}

// newStore returns the store at an address; nil if that is empty.
func newStore(at, schema string) (store, error) {
	switch {
	case at == "":
		return nil, nil
	case !strings.Contains(at, "://"):
		return &file{path: at}, nil
	}
	config, err := pgx.ParseConfig(at)
	if err != nil {
		return nil, fmt.Errorf("--state takes a file or postgres://USER@HOST:PORT/DATABASE: %w", err) // without the password
	}
	return &table{config: config, schema: schema, name: pgx.Identifier{schema, "push_state"}.Sanitize()}, nil
}

// file is a state in a file.
type file struct {
	path string
	lock *durable.Lock
}

func (f *file) open(context.Context) ([]byte, error) {
	lock, err := durable.Acquire(f.path + ".lock")
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("another sync has the state %s: stop it, or give another --state", f.path)
	}
	if err != nil {
		return nil, err
	}
	f.lock = lock
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return data, nil
}

func (f *file) save(_ context.Context, data []byte) error {
	return durable.WriteFile(f.path, data, 0o600)
}

func (f *file) close() error { return f.lock.Release() }

// table is a state in the only row of a table.
type table struct {
	config       *pgx.ConnConfig
	schema, name string
	conn         *pgx.Conn
}

// lockClass is the class of the locks of states. A copy may be in the same schema.
const lockClass = 0x1ec7e43

// lockWait is how long a sync waits for another one that has the state, and for the end of a connection.
const lockWait = 5 * time.Second

func (t *table) open(ctx context.Context) (data []byte, err error) {
	if t.conn, err = pgx.ConnectConfig(ctx, t.config); err != nil {
		return nil, replicate.Temporary(fmt.Errorf("the state: %w", err))
	}
	defer func() {
		if err != nil {
			_ = t.close()
		}
	}()
	if err := postgres.Lock(ctx, t.conn, lockClass, t.schema, lockWait); err != nil {
		return nil, t.failed(err)
	}
	var there bool
	if err := t.conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, t.name).Scan(&there); err != nil {
		return nil, t.failed(err)
	}
	if !there {
		_, err := t.conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{t.schema}.Sanitize()+`;
			CREATE TABLE `+t.name+` (id integer PRIMARY KEY CHECK (id = 1), state text NOT NULL)`)
		return nil, t.failed(err)
	}
	err = t.conn.QueryRow(ctx, `SELECT state FROM `+t.name).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return data, t.failed(err)
}

func (t *table) save(ctx context.Context, data []byte) error {
	_, err := t.conn.Exec(ctx, `INSERT INTO `+t.name+` VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET state = excluded.state`, string(data))
	return t.failed(err)
}

// failed marks an error after which another connection may work.
func (t *table) failed(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the state in the schema %s: %w", t.schema, err)
	if t.conn.IsClosed() {
		return replicate.Temporary(err)
	}
	return err
}

func (t *table) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	_ = t.conn.Close(ctx)
	return nil
}
