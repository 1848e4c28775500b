package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/copies"
)

// explain returns err with an explanation for the user, such as a missing privilege, and marks errors that a retry may
// avoid. during is the beginning of the message: the step that failed.
func (d *Destination) explain(during string, err error) error {
	if _, pooled := errors.AsType[*PooledError](err); pooled || err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		_, connecting := errors.AsType[*pgconn.ConnectError](err)
		if connecting || d.conn == nil || d.conn.IsClosed() {
			return copies.Temporary(fmt.Errorf("%s %s: %w", during, d, err))
		}
		return err
	}
	why := func(text string, args ...any) error {
		return fmt.Errorf("%s %s: %s (%s, SQLSTATE %s)", during, d, fmt.Sprintf(text, args...), pg.Message, pg.Code)
	}
	switch pg.Code {
	case "28P01", "28000":
		return why("Postgres refuses the credentials of user %q; check the user and password of --to", d.config.User)
	case "3D000":
		return why("there is no such database; create it, or correct --to")
	case "42501":
		return why("user %q lacks a privilege; it needs CREATE on the database for a new copy, and TEMPORARY, must own the copy's tables, and row security must not apply to it", d.config.User)
	case "53100":
		return why("the server has no space left; the copy is as after the last batch; free space, and run the command again")
	case "42P10":
		return why("a table of the copy lacks its primary key, or is published without the columns of the key; run once with --verify --repair, or correct the publication")
	case "42703", "42P01", "42804", "23502", "3F000":
		return why("somebody changed the copy's tables meanwhile, or publishes them without the columns of their keys; change that back, or give another --schema for a new copy")
	case "55000":
		return why("a publication has one of the copy's tables, whose replica identity somebody removed; set it to DEFAULT, or take the schema out of the publication")
	case "23505":
		return why("a unique index that lectern sync did not make refuses a row; drop the index")
	}
	switch class := pg.Code[:2]; {
	case class == "08", class == "57" && pg.Code != "57014", class == "40", pg.Code == "53300", pg.Code == "55P03":
		return copies.Temporary(why("Postgres is out of reach for the moment"))
	case pg.Code == "25006":
		return why("the server takes no writes; --to must name the primary")
	case pg.Code == "25P03", pg.Code == "25P04":
		return why("a pooler or the server ends transactions that take long; let it not end those of user %q", d.config.User)
	}
	return fmt.Errorf("%s %s: %w", during, d, err)
}
