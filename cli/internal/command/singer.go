package command

import (
	"encoding/json"
	"io"
	"os"
	"runtime/debug"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/cli/internal/replicate/singer"
	"github.com/lectern-dev/lectern/client"
)

type singerCommand struct {
	serverFlags
	Project  string `short:"p" env:"LECTERN_PROJECT_ID" help:"The project's id." placeholder:"ID"`
	Config   string `type:"path" help:"A JSON file with url, project_id and api_key (or api_key_file); each wins over its flag." placeholder:"FILE"`
	Catalog  string `type:"path" help:"The file with the selected streams. Default: all." placeholder:"FILE"`
	State    string `type:"path" help:"The file with the state of an earlier run." placeholder:"FILE"`
	Discover bool   `help:"Print the catalog."`
}

// Help describes the tap, with examples.
func (singerCommand) Help() string {
	return `The command is a Singer tap: it prints SCHEMA, RECORD and STATE messages for a target, from the state of --state up to the newest change. The streams are entries, events, removals, embeddables, embeddable_versions, experiments and experiment_history. A removed entry has _sdc_deleted_at, and all of its other columns are null.

Examples:

	lectern singer --config config.json --state state.json | target-jsonl >> states.ndjson
	tail -n 1 states.ndjson > state.json
	lectern singer --config config.json --discover > catalog.json`
}

// Run prints the messages, or the catalog.
func (f *singerCommand) Run(s *Session, c *commands) error {
	if f.Discover {
		return json.NewEncoder(s.Out).Encode(singer.Catalog())
	}
	var state singer.State
	streams := singer.Streams
	if f.Catalog != "" {
		err := readInto(f.Catalog, "--catalog", func(data []byte) (err error) { streams, err = singer.Selection(data); return err })
		if err != nil {
			return err
		}
	}
	if f.State != "" {
		err := readInto(f.State, "--state", func(data []byte) (err error) { state, err = singer.ReadState(data); return err })
		if err != nil {
			return err
		}
	}
	reader, err := f.open(s.Err)
	if err != nil {
		return err
	}
	if s.Environ["GOMEMLIMIT"] == "" { // else the runtime has read it
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	}
	if state.ProjectID != "" && state.ProjectID != f.Project {
		return usagef("--state: %s is of project %s; the project is %s", f.State, state.ProjectID, f.Project)
	}
	w := singer.NewWriter(s.Out, f.Project, streams, state)
	if err := w.Begin(); err != nil {
		return err
	}
	_, err = replicate.Run(s.Context, replicate.Options{
		Client: reader, Source: replicate.Source{URL: f.URL, ProjectID: f.Project}, Destination: w, Project: singer.Project(streams),
		PageSize: 5000, Attempts: 1, Note: func(text string) { c.note(s, "%s", text) },
	})
	return err
}

// open reads the configuration and returns a client.
func (f *singerCommand) open(notes io.Writer) (*client.Client, error) {
	if f.Config != "" {
		var in struct {
			URL     string `json:"url"`
			Project string `json:"project_id"`
			Key     string `json:"api_key"`
			KeyFile string `json:"api_key_file"`
		}
		if err := readInto(f.Config, "--config", func(data []byte) error { return json.Unmarshal(data, &in) }); err != nil {
			return nil, err
		}
		if in.URL != "" {
			f.URL = in.URL
		}
		if in.Project != "" {
			f.Project = in.Project
		}
		if in.Key != "" || in.KeyFile != "" {
			f.APIKey, f.APIKeyFile = in.Key, in.KeyFile
		}
	}
	if f.Project == "" {
		return nil, usagef("no project: set project_id in the file of --config, or LECTERN_PROJECT_ID")
	}
	return f.client(patient(11), notes)
}

// readInto parses the file that a flag names.
func readInto(path, flag string, parse func([]byte) error) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = parse(data)
	}
	if err != nil {
		return usagef("%s: %s: %w", flag, path, err)
	}
	return nil
}
