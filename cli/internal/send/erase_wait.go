package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/destination"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
)

// waitFlags are the flags for the copies of the project that must also remove the data before the command ends.
type waitFlags struct {
	Wait    []string      `sep:" " env:"LECTERN_ERASE_WAIT" help:"Wait until this copy has passed the removal, and print a receipt. It needs the API and a key with entries:read. May be repeated. Other users of this machine can see flags: put a URL with a password into the variable, and spaces between several; write a space within a URL as %20." placeholder:"${copies}"`
	Timeout time.Duration `default:"1h" help:"How long --wait waits. Faults of the API or of a copy do not end it before. Default: ${default}." placeholder:"DURATION"`
	Schema  string        `default:"lectern" help:"The schema of copies in Postgres. Default: ${default}." placeholder:"NAME"`
}

// receipt is the output of a removal with --wait: the removed data, and the copies that have removed the data too.
type receipt struct {
	ProjectID string `json:"project_id"`
	EntryID   string `json:"entry_id,omitempty"`
	ContactID string `json:"contact_id,omitempty"`
	Entries   int    `json:"entries"`
	Events    int    `json:"events"`
	// Seq is the number of the project's newest change after the removal.
	Seq       int64         `json:"seq"`
	RemovedAt time.Time     `json:"removed_at"`
	Copies    []copyReceipt `json:"copies"`
}

// copyReceipt is the part of a [receipt] for one copy. PassedAt is the time at which the copy was seen to have passed
// the removal.
type copyReceipt struct {
	Copy     string    `json:"copy"`
	Seq      int64     `json:"seq"` // of its position
	PassedAt time.Time `json:"passed_at"`
	// FilesRewritten counts the files that the copy has rewritten for erasures between the command's start and
	// PassedAt. FilesRewritten is nil if the copy does not count rewritten files.
	FilesRewritten *int `json:"files_rewritten,omitempty"`
}

// awaited is a copy for which a removal waits, and the status of the copy before the removal.
type awaited struct {
	name   string
	to     copies.Verifiable
	before copies.Status
}

// copies returns the copies of --wait, and a client that may read the change feed. Without --wait, both are nil. A copy
// that cannot be reached or is of another project is an error. copies is called before the removal.
func (f waitFlags) copies(s *shell.Session, server shell.ServerFlags, project string) (list []awaited, reader *client.Client, err error) {
	if len(f.Wait) == 0 {
		return nil, nil, nil
	}
	if reader, err = server.Client(shell.Interactive(), s.Err); err != nil {
		return nil, nil, err
	}
	if _, err := reader.ChangesPage(s.Context, project, client.ChangeQuery{After: "now", PageSize: 1}); err != nil {
		return nil, nil, err
	}
	for _, to := range f.Wait {
		d, err := destination.OpenCopy(destination.Options{
			Flag: "--wait", URL: to, Schema: f.Schema, Source: copies.Source{URL: server.URL, ProjectID: project}, Columns: columns.Choice{All: true}, Environ: s.Environ,
		})
		if err != nil {
			return nil, nil, err
		}
		a := awaited{name: d.String(), to: d}
		if a.before, err = d.Status(s.Context); err != nil {
			return nil, nil, err
		}
		if a.before.ProjectID != project {
			return nil, nil, fmt.Errorf("the %s is a copy of project %q, not of %q; nothing was removed", d, a.before.ProjectID, project)
		}
		list = append(list, a)
	}
	return list, reader, nil
}

// errNotPassed is the error for a copy that works, but whose position is before the removal.
var errNotPassed = errors.New("its sync has not come to the removal yet")

// wait waits until all copies in list have passed the removal, and returns the completed receipt. After --timeout,
// wait returns an error.
func (f waitFlags) wait(s *shell.Session, r receipt, list []awaited, reader *client.Client) (receipt, error) {
	ctx, cancel := context.WithTimeout(s.Context, f.Timeout)
	defer cancel()
	for _, a := range list {
		say := copies.Once(func(text string) { s.Note("Removed. Waiting for the %s%s", a.name, text) })
		var last error      // before the time-out, which hides it
		var fault time.Time // when the last fault was shown: the text of each has another request id
		for {
			status, err := a.passed(ctx, reader, &r)
			if err == nil {
				passed := copyReceipt{Copy: a.name, Seq: status.Position.Seq, PassedAt: s.Now().UTC()}
				if status.Rewritten != nil && a.before.Rewritten != nil {
					passed.FilesRewritten = new(*status.Rewritten - *a.before.Rewritten)
				}
				r.Copies = append(r.Copies, passed)
				break
			}
			if s.Context.Err() != nil {
				return r, s.Context.Err()
			}
			if last == nil || ctx.Err() == nil {
				last = err
			}
			if ctx.Err() != nil {
				return r, fmt.Errorf("the data is removed, but within %v (--timeout) the %s has not passed that; repeat the command for a receipt: %w", f.Timeout, a.name, last)
			}
			if errors.Is(err, errNotPassed) {
				say(": " + shell.OneLine(err))
			} else if now := s.Now(); now.Sub(fault) >= shell.NoteEvery {
				fault = now
				say(": " + shell.OneLine(err))
			}
			select { // a fault may pass
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
	return r, nil
}

// passed returns an error until the copy has all changes up to the number of the removal. If the receipt has no number
// yet, passed stores the number of the newest change in the receipt.
func (a awaited) passed(ctx context.Context, reader *client.Client, r *receipt) (copies.Status, error) {
	if r.Seq == 0 {
		newest, err := reader.ChangesPage(ctx, r.ProjectID, client.ChangeQuery{After: "now", PageSize: 1})
		if err != nil {
			return copies.Status{}, err
		}
		r.Seq = newest.LastSeq
	}
	status, err := a.to.Status(ctx)
	if err != nil {
		return status, err
	}
	// Numbers have gaps, so the feed says what comes after the copy's position.
	next, err := reader.ChangesPage(ctx, r.ProjectID, client.ChangeQuery{Cursor: status.Position.Cursor, PageSize: 1})
	if err == nil && (len(next.Changes) == 0 && !next.Current || len(next.Changes) > 0 && next.Changes[0].Seq <= r.Seq) {
		err = errNotPassed
	}
	return status, err
}
