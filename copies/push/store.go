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

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/durable"
	"github.com/lectern-dev/lectern/copies/postgres"
)

// store stores the state of a [Destination], and locks it for one process at a time.
type store interface {
	// open locks the state until close, and returns the stored data; nil if nothing is stored. open fails if another
	// process has the lock.
	open(ctx context.Context) ([]byte, error)
	// save replaces the stored data. After a crash, the store has the old or the new data.
	save(ctx context.Context, data []byte) error
	close() error
}

// newStore returns a store: at is the path of a file or the URL of a Postgres database. newStore returns nil if at is
// empty. schema is for Postgres only.
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

// file stores a state in a file, and locks it by a second file with the ending .lock.
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
	return durable.WriteFile(f.path, data)
}

func (f *file) close() error { return f.lock.Release() }

// table stores a state in the only row of a Postgres table, and locks it by an advisory lock.
type table struct {
	config       *pgx.ConnConfig
	schema, name string
	conn         *pgx.Conn
}

// lockClass is the first key of the advisory locks of states. lockClass differs from the key for copies, because a
// copy may be in the same schema.
const lockClass = 0x1ec7e43

// lockWait is how long open waits for another process that has the state locked. Also, close waits for the end of a
// connection as long as lockWait.
const lockWait = 5 * time.Second

func (t *table) open(ctx context.Context) (data []byte, err error) {
	t.conn, err = postgres.Connect(ctx, t.config)
	if _, pooled := errors.AsType[*postgres.PooledError](err); pooled {
		return nil, fmt.Errorf("the state: %w", err)
	}
	if err != nil {
		return nil, copies.Temporary(fmt.Errorf("the state: %w", err))
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

// failed adds the schema to err. If the connection is closed, failed marks err as temporary, because a new connection
// may work.
func (t *table) failed(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the state in the schema %s: %w", t.schema, err)
	if t.conn.IsClosed() {
		return copies.Temporary(err)
	}
	return err
}

func (t *table) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	_ = t.conn.Close(ctx)
	return nil
}
