// Package destination opens the destination of a project's changes. A destination is a copy in Postgres, in a folder
// or in a bucket, or a receiver of webhooks. The errors of the package are errors of a command line, so they name
// flags.
package destination

import (
	"fmt"
	"net/url"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/postgres"
	"github.com/lectern-dev/lectern/copies/push"
)

// Destination is a copy or a receiver of webhooks. String returns its kind and its address, for messages.
type Destination interface {
	copies.Destination
	fmt.Stringer
	// Full reports whether a key of entry_data has no column because the copy has the maximum number of columns.
	Full() bool
}

// Options are the settings of a destination, which come from the command's flags and the environment.
type Options struct {
	URL        string // by its scheme: postgres, file, s3, or https for a receiver
	Schema     string // of a copy in Postgres, or of the state of a receiver
	Source     copies.Source
	Moved      bool // continue a copy that was made from another URL of the same deployment
	Columns    columns.Choice
	Mask       *copies.Mask
	SoftDelete bool              // Postgres only: keep removed rows
	Verify     bool              // compare the copy with its source; an error for a receiver
	Repair     bool              // with Verify: mend the copy
	Resume     bool              // send again to a receiver that answered 410
	Note       func(text string) // for the user; nil for none
	Environ    map[string]string // has the credentials of a bucket, and the secret of a receiver
	Receiver   ReceiverFlags
}

// lockWait is how long a copy in Postgres waits for another run that holds the copy's lock. After a kill, a run holds
// the lock until Postgres notices.
const lockWait = 5 * time.Second

// Open returns the destination that the scheme of o.URL selects. Each error is a usage error, such as a flag that this
// destination does not support.
func Open(o Options) (Destination, error) {
	// o.URL may contain a password, so errors do not show the URL.
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, shell.Usagef("--to is no URL; want postgres://USER@HOST:PORT/DATABASE, file:///FOLDER, s3://BUCKET/PREFIX or https://HOST/PATH")
	}
	if receives := u.Scheme == "https" || u.Scheme == "http"; !receives && (o.Resume || o.Receiver.given()) {
		return nil, shell.Usagef("--types, --from, --state, --header-file, --skip or --resume was given with the scheme %s; allowed: https", u.Scheme)
	} else if receives {
		return o.receiver()
	}
	if u.Scheme == "postgres" || u.Scheme == "postgresql" {
		d, err := postgres.New(postgres.Options{
			URL: o.URL, Schema: o.Schema, Source: o.Source, Moved: o.Moved, Columns: o.Columns, Mask: o.Mask, SoftDelete: o.SoftDelete, LockWait: lockWait, Note: o.Note,
		})
		if err != nil {
			return nil, shell.Usage(fmt.Errorf("--to: %w", err))
		}
		return d, nil
	}
	if o.SoftDelete {
		return nil, shell.Usagef("--soft-delete was given with the scheme %s; allowed: postgres. Parquet files have a list of removals always", u.Scheme)
	}
	parquet := files.Options{Source: o.Source, Moved: o.Moved, Repair: o.Repair, Columns: o.Columns, Mask: o.Mask, Note: o.Note}
	switch u.Scheme {
	case "file":
		if u.Host != "" || u.Path == "" {
			return nil, shell.Usagef("--to was given with the scheme file; allowed: file:///FOLDER, with three slashes")
		}
		return files.Folder(u.Path, parquet), nil
	case "s3":
		if u.Host == "" || u.User != nil {
			return nil, shell.Usagef("--to was given with the scheme s3; allowed: s3://BUCKET/PREFIX")
		}
		d, err := files.Bucket(u.Host, u.Path, o.Environ, parquet)
		if err != nil {
			return nil, shell.Usage(err)
		}
		return d, nil
	}
	return nil, shell.Usagef("--to was given with the scheme %q; allowed: postgres, file, s3, https", u.Scheme)
}

// receiver returns the receiver of webhooks at o.URL. A missing --state and a given --verify are usage errors.
func (o Options) receiver() (Destination, error) {
	if o.Receiver.State == "" {
		return nil, shell.Usagef("--state is missing: it keeps the position, in a file or in Postgres")
	}
	if o.Verify {
		return nil, shell.Usagef("--verify was given with a receiver; allowed: postgres, file, s3")
	}
	return o.Receiver.OpenReceiver("--to", push.Options{
		URL: o.URL, Secret: o.Environ["LECTERN_SYNC_SECRET"], Source: o.Source, Moved: o.Moved, Schema: o.Schema, Resume: o.Resume, Mask: o.Mask, Note: o.Note,
	})
}
