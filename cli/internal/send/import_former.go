package send

import (
	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// formerRows finds the entries whose ids are the numbers of rows, as version 0.1.0 gave them to files of tools without ids.
type formerRows struct {
	shell.ServerFlags
	session *shell.Session
	dry     bool
	found   map[string]*csvrow.Former // by the prefix and the embeddable
}

// read is the function for csvrow.Options.Former. Without a key, read returns a usage error, or nil in a dry run.
func (r *formerRows) read(project, embeddable, prefix string) (*csvrow.Former, error) {
	key := prefix + embeddable
	if r.found[key] != nil {
		return r.found[key], nil
	}
	reader, err := r.Client(shell.Interactive(), r.session.Err)
	switch {
	case err != nil && r.dry:
		return nil, nil
	case err != nil || project == "":
		return nil, shell.Usagef("rows without an id need --project and an API key, such as LECTERN_API_KEY, to see whether version 0.1.0 stored them by their numbers; without such entries, give --set entry_id='%s{#hash}'", prefix)
	}
	former := &csvrow.Former{}
	for entry, err := range reader.Entries(r.session.Context, project, client.EntryQuery{EmbeddableID: embeddable}) {
		if err != nil {
			return nil, err
		}
		former.Add(prefix, entry)
	}
	if r.found == nil {
		r.found = map[string]*csvrow.Former{}
	}
	r.found[key] = former
	return former, nil
}

// note says how many rows of the files keep the ids of version 0.1.0.
func (r *formerRows) note() {
	for _, f := range r.found {
		if f.Total > 0 {
			r.session.Note("Version 0.1.0 stored %d entries by the numbers of rows, such as %s: %d of the files' rows are among them and keep these ids.", f.Total, f.Example, f.Kept)
		}
	}
}
