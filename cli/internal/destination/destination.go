// Package destination opens the destination of a project's changes. A destination is a copy in Postgres, in a folder
// or in a bucket, or a receiver of webhooks. The errors of the package are errors of a command line, so they name
// flags.
package destination

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
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
	// Remarks returns sentences for the user about values that the run has stored in another way than usual.
	Remarks() []string
}

// Copy is a [Destination] that can be verified.
type Copy interface {
	copies.Verifiable
	fmt.Stringer
}

// Options are the settings of a destination, which come from the command's flags and the environment.
type Options struct {
	Flag       string // that has URL, for errors
	URL        string // by its scheme, one of schemes
	Schema     string // of a copy in Postgres, or of the state of a receiver
	Source     copies.Source
	Moved      bool // continue a copy that was made from another URL of the same deployment
	Columns    columns.Choice
	Mask       *copies.Mask
	SoftDelete bool              // keep removed rows, which not all copies can
	Verify     bool              // compare the copy with its source; an error for a receiver
	Repair     bool              // with Verify: mend the copy
	Resume     bool              // send again to a receiver that answered 410
	Note       func(text string) // for the user; nil for none
	Environ    map[string]string // has the credentials of a bucket, and the secret of a receiver
	Receiver   ReceiverFlags
}

// scheme is a kind of destination, by the scheme of its URL. The form without its capital letters begins each URL.
type scheme struct {
	name, synonym, form string
	// copy reports that the destination is a [Copy], and receiver that it takes the [ReceiverFlags]. softDelete reports
	// that a copy can keep removed rows.
	copy, receiver, softDelete bool
	open                       func(o Options, u *url.URL) (Destination, error)
}

// schemes has all kinds of destinations. The help, the errors and the completion of flags follow from schemes.
var schemes = []scheme{
	{name: "postgres", synonym: "postgresql", form: "postgres://USER@HOST:PORT/DATABASE", copy: true, softDelete: true, open: openPostgres},
	{name: "file", form: "file:///FOLDER", copy: true, open: openFolder},
	{name: "s3", form: "s3://BUCKET/PREFIX", copy: true, open: openBucket},
	{name: "https", synonym: "http", form: "https://HOST/PATH", receiver: true, open: openReceiver},
}

// names returns the names of the selected schemes, and forms returns the forms of their URLs.
func names(which func(scheme) bool) string {
	return listed(which, ", ", func(s scheme) string { return s.name })
}
func forms(which func(scheme) bool, between string) string {
	return listed(which, between, func(s scheme) string { return s.form })
}

func listed(which func(scheme) bool, between string, of func(scheme) string) string {
	var list []string
	for _, s := range schemes {
		if which(s) {
			list = append(list, of(s))
		}
	}
	return strings.Join(list, between)
}

func all(scheme) bool           { return true }
func copying(s scheme) bool     { return s.copy }
func receiving(s scheme) bool   { return s.receiver }
func softDeletes(s scheme) bool { return s.softDelete }

// Texts returns the texts that the tags of flags name: the forms of the URLs of all destinations, and those of copies.
func Texts() map[string]string {
	return map[string]string{"destinations": forms(all, "|"), "copies": forms(copying, "|")}
}

// find returns the URL of o and the row of its scheme.
func find(o Options) (scheme, *url.URL, error) {
	// o.URL may contain a password, so errors do not show the URL.
	u, err := url.Parse(o.URL)
	if err != nil {
		return scheme{}, nil, shell.Usagef("%s is no URL; want one of %s", o.Flag, forms(all, ", "))
	}
	i := slices.IndexFunc(schemes, func(s scheme) bool { return s.name == u.Scheme || s.synonym == u.Scheme })
	if i < 0 || u.Scheme == "" {
		return scheme{}, nil, shell.Usagef("%s was given with the scheme %q; allowed: %s", o.Flag, u.Scheme, names(all))
	}
	return schemes[i], u, nil
}

// Open returns the destination that the scheme of o.URL selects. Each error is a usage error, such as a flag that this
// destination does not support.
func Open(o Options) (Destination, error) {
	s, u, err := find(o)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		flags string
		given bool
		takes func(scheme) bool
	}{
		{"--types, --from, --state, --header-file, --skip or --resume", o.Resume || o.Receiver.given(), receiving},
		{"--soft-delete", o.SoftDelete, softDeletes},
		{"--verify", o.Verify, copying},
	} {
		if f.given && !f.takes(s) {
			return nil, shell.Usagef("%s was given with the scheme %s; allowed: %s", f.flags, u.Scheme, names(f.takes))
		}
	}
	return s.open(o, u)
}

// OpenCopy returns the copy that the scheme of o.URL selects, like [Open]. A receiver is a usage error.
func OpenCopy(o Options) (Copy, error) {
	if s, u, err := find(o); err != nil {
		return nil, err
	} else if !s.copy {
		return nil, shell.Usagef("%s was given with the scheme %s; allowed: %s", o.Flag, u.Scheme, names(copying))
	}
	d, err := Open(o)
	if err != nil {
		return nil, err
	}
	return d.(Copy), nil //nolint:errcheck,forcetypeassert // as its row says
}

// lockWait is how long a copy in Postgres waits for another run that holds the copy's lock. After a kill, a run holds
// the lock until Postgres notices.
const lockWait = 5 * time.Second

func openPostgres(o Options, _ *url.URL) (Destination, error) {
	d, err := postgres.New(postgres.Options{
		URL: o.URL, Schema: o.Schema, Source: o.Source, Moved: o.Moved, Columns: o.Columns, Mask: o.Mask, SoftDelete: o.SoftDelete, LockWait: lockWait, Note: o.Note,
	})
	if err != nil {
		return nil, shell.Usage(fmt.Errorf("%s: %w", o.Flag, err))
	}
	return d, nil
}

// parquet returns the options of a copy in Parquet files.
func (o Options) parquet() files.Options {
	return files.Options{Source: o.Source, Moved: o.Moved, Repair: o.Repair, Columns: o.Columns, Mask: o.Mask, Note: o.Note}
}

func openFolder(o Options, u *url.URL) (Destination, error) {
	if u.Host != "" || u.Path == "" {
		return nil, shell.Usagef("%s was given with the scheme file; allowed: file:///FOLDER, with three slashes", o.Flag)
	}
	return files.Folder(u.Path, o.parquet()), nil
}

func openBucket(o Options, u *url.URL) (Destination, error) {
	if u.Host == "" || u.User != nil {
		return nil, shell.Usagef("%s was given with the scheme s3; allowed: s3://BUCKET/PREFIX", o.Flag)
	}
	d, err := files.Bucket(u.Host, u.Path, o.Environ, o.parquet())
	if err != nil {
		return nil, shell.Usage(err)
	}
	return d, nil
}

// openReceiver returns a receiver of webhooks. A missing --state is a usage error.
func openReceiver(o Options, _ *url.URL) (Destination, error) {
	if o.Receiver.State == "" {
		return nil, shell.Usagef("--state is missing: it keeps the position, in a file or in Postgres")
	}
	return o.Receiver.OpenReceiver(o.Flag, push.Options{
		URL: o.URL, Secret: o.Environ["LECTERN_SYNC_SECRET"], Source: o.Source, Moved: o.Moved, Schema: o.Schema, Resume: o.Resume, Mask: o.Mask, Note: o.Note,
	})
}
