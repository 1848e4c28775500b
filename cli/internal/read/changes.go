package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/export"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Changes is the command lectern changes, which prints the records of the change feed.
type Changes struct {
	shell.APIFlags
	Follow     bool     `short:"f" help:"Wait for more changes after the newest one."`
	Types      []string `enum:"entry,event,entry_removed" help:"Only changes of these types: entry, event, entry_removed. Default: all. A copy needs entry_removed too." placeholder:"TYPE"`
	CursorFile string   `type:"path" help:"Continue where the last run ended, and store the position in FILE. Without it, every run starts at the beginning." placeholder:"FILE"`
	PageSize   int      `default:"5000" help:"Changes a request; it may differ from run to run. Default: ${default}." placeholder:"N"`
	Retries    int      `default:"10" min:"0" help:"How often a request is retried (429, 503, broken connections), after the time that the server asks for. Default: ${default}." placeholder:"N"`
}

// longestWait is how long one request of --follow waits for new changes before the API answers with none.
const longestWait = time.Minute

// Help returns the text of lectern changes --help: the form of the lines, the guarantees after a kill, and examples.
func (Changes) Help() string {
	return `One change a line: {"change":"entry","seq":…,"entry":{…}}, {"change":"event","seq":…,"event":{…}} or {"change":"entry_removed","seq":…,"entry_id":"…","removed_at":"…","reason":"…"}. Store each entry by its entry_id and each event by its event_key; a removal removes the entry and all events with its id. Nothing is left out, so a reader that does this has an exact copy.

The command writes the cursor to --cursor-file after the changes before it. If standard output is a file, these are on disk by then. If the command is killed, run it again: it delivers every change at least once. The last page may come again, which does not harm a reader that stores by id. If the file ends within a line, the command ends that line first, so skip lines that are not JSON. The exit code is 4 if the source was restored from a backup and has lost the position: the message says which changes to drop. Through a pipe, the command cannot know what the reader has stored. A reader that is killed loses the changes in the pipe, and those that it had not stored.

Examples:

	lectern changes --env-file .lectern/demo.env | jq -c 'select(.change == "entry").entry.entry_id'
	lectern changes --cursor-file pr_demo.cursor >> changes.ndjson      # new changes each time
	lectern changes --cursor-file pr_demo.cursor --follow >> changes.ndjson`
}

// Run prints the changes after the position in the cursor file, or all changes if there is no such file. Without
// --follow, Run returns after the newest change.
func (f *Changes) Run(s *shell.Session) error {
	q := f.query()
	reader, err := f.Client(shell.Patient(f.Retries+1), s.Err)
	if err != nil {
		return err
	}
	list := q.List(f.Project)
	done, err := export.Follow(s.Context, export.FollowOptions{
		Feed: export.Feed{URL: f.URL, ProjectID: f.Project, Types: strings.Join(f.Types, ",")},
		Fetch: func(ctx context.Context, cursor string, receive func(client.RawPage) error) error {
			return reader.Raw(ctx, list, cursor, f.PageSize, receive)
		},
		Stream: s.Out, CursorFile: f.CursorFile, Endless: f.Follow,
	})
	if err == nil || errors.Is(err, context.Canceled) && s.Context.Err() != nil {
		s.Note("%d changes; the newest of the project is number %d.", done.Changes, done.LastSeq)
	}
	if lost, ok := errors.AsType[*client.HistoryLostError](err); ok {
		position, again := "the position of this run", "run the command again"
		if f.CursorFile != "" {
			position, again = "the cursor in "+f.CursorFile, "remove that file, and run the command again"
		}
		err = shell.Advise(fmt.Errorf("the source has lost its changes %s, for example by a restore of a backup, and %s is among them: %w", lost.Stretch(), position, err),
			fmt.Sprintf("drop what has a greater number than %d, %s: it reads from the beginning", lost.After, again))
	}
	return err
}

// query returns the query that the flags select. query sorts the types, so that a cursor file does not depend on the
// order of the flags.
func (f *Changes) query() client.ChangeQuery {
	slices.Sort(f.Types)
	f.Types = slices.Compact(f.Types)
	var q client.ChangeQuery
	for _, t := range f.Types {
		q.Types = append(q.Types, client.ChangeType(t))
	}
	if f.Follow {
		q.Wait = longestWait
	}
	return q
}
