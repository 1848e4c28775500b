package read

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/messages"
)

// messageFlags are the flags of the commands singer and airbyte, which another program runs.
type messageFlags struct {
	shell.ServerFlags
	Project string `short:"p" env:"LECTERN_PROJECT_ID" help:"The project's id." placeholder:"ID"`
	Config  string `type:"path" help:"A JSON file with url, project_id and api_key; each wins over its flag." placeholder:"FILE"`
	Catalog string `type:"path" help:"The file with the selected streams. Default: all." placeholder:"FILE"`
	maskFlags
	State      string `type:"path" help:"The file with the state of an earlier run." placeholder:"FILE"`
	ResetState bool   `help:"Begin from the beginning, although --state has a position. Empty the tables of the target first."`
}

const streamsHelp = `up to the newest change, from the state of --state or from the beginning. The streams are entries, events, removals, embeddables, embeddable_versions, experiments and experiment_history. All columns of a removed entry are null, except entry_id, seq and `

// Singer is the command lectern singer, which prints the project's changes as a tap of the Singer protocol.
type Singer struct {
	messageFlags
	Discover bool `help:"Print the catalog."`
}

// Help returns the text of lectern singer --help: the messages and streams of the tap, and examples.
func (Singer) Help() string {
	return `The command is a Singer tap: it prints SCHEMA, RECORD and STATE messages for a target, ` + streamsHelp + `_sdc_deleted_at.

Examples:

	lectern singer --config config.json --state state.json | target-jsonl >> states.ndjson
	tail -n 1 states.ndjson > state.json`
}

// Run prints the messages after the state of --state. With --discover, Run prints the catalog instead.
func (f *Singer) Run(s *shell.Session) error {
	if f.Discover {
		return json.NewEncoder(s.Out).Encode(messages.Singer{}.Catalog())
	}
	return f.read(s, messages.Singer{})
}

// Airbyte is the command lectern airbyte, which prints the project's changes as a source of the Airbyte protocol.
type Airbyte struct {
	Command string `arg:"" enum:"spec,check,discover,read" help:"One of spec, check, discover and read."`
	messageFlags
}

// Help returns the text of lectern airbyte --help: the messages and streams of the source, and examples.
func (Airbyte) Help() string {
	return `The command is a source by the Airbyte protocol. read prints RECORD and STATE messages ` + streamsHelp + `_ab_cdc_deleted_at.

Examples:

	lectern airbyte discover --config config.json
	lectern airbyte read --config config.json --catalog catalog.json --state state.json`
}

// Run prints the messages that the Airbyte protocol demands for the command spec, check, discover or read. A failed
// check is a message of the output, and not an error of Run.
func (f *Airbyte) Run(s *shell.Session) error {
	airbyte, out := messages.Airbyte{}, json.NewEncoder(s.Out)
	switch f.Command {
	case "spec":
		return out.Encode(airbyte.Spec())
	case "check":
		reader, _, _, err := f.open(s, shell.Interactive())
		if err == nil {
			_, err = reader.ChangesPage(s.Context, f.Project, client.ChangeQuery{After: "now"})
		}
		return out.Encode(airbyte.Status(err))
	case "discover":
		return out.Encode(airbyte.Catalog())
	}
	return f.read(s, airbyte)
}

// read prints the messages of all changes after the state of --state, in the given format.
func (f *messageFlags) read(s *shell.Session, format messages.Format) error {
	reader, catalog, state, err := f.open(s, shell.Patient(11))
	if err != nil {
		return err
	}
	mask, err := f.mask(s.Environ)
	if err != nil {
		return err
	}
	w, err := messages.NewWriter(s.Out, format, f.Project, catalog, state, mask)
	if err != nil {
		return shell.Usage(err)
	}
	_, err = copies.Run(s.Context, copies.Options{
		Client: reader, Source: copies.Source{URL: f.URL, ProjectID: f.Project}, Destination: w, Mask: mask,
		PageSize: 5000, Attempts: 1, Note: func(text string) { s.Note("%s", text) },
	})
	if client.Code(err) == client.CodeHistoryLost {
		err = shell.Advise(err, "empty the tables of the target, and run once with --reset-state, or clear the data of the connection: the run reads from the beginning")
	}
	return err
}

// open reads the files of --config, --catalog and --state, and returns a client for the configuration, which replaces
// values of flags. The catalog and the state are empty if their flags were not given.
func (f *messageFlags) open(s *shell.Session, retry client.Retry) (reader *client.Client, catalog, state gjson.Result, err error) {
	var config gjson.Result
	for _, file := range []struct {
		flag, path string
		to         *gjson.Result
	}{{"--config", f.Config, &config}, {"--catalog", f.Catalog, &catalog}, {"--state", f.State, &state}} {
		if file.path == "" {
			continue
		}
		data, err := os.ReadFile(file.path)
		if err == nil && !gjson.ValidBytes(data) {
			err = errors.New("it is not JSON")
		}
		if err != nil {
			return nil, catalog, state, shell.Usagef("%s: %s: %w", file.flag, file.path, err)
		}
		*file.to = gjson.ParseBytes(data)
	}
	f.URL = cmp.Or(config.Get("url").String(), f.URL)
	f.Project = cmp.Or(config.Get("project_id").String(), f.Project)
	if key := config.Get("api_key").String(); key != "" {
		f.ServerFlags = shell.ServerFlags{URL: f.URL, APIKey: key}
	}
	if f.Project == "" {
		return nil, catalog, state, shell.Usagef("no project: set project_id in the file of --config, or LECTERN_PROJECT_ID")
	}
	reader, err = f.Client(retry, s.Err)
	if f.ResetState {
		state = gjson.Result{}
	}
	return reader, catalog, state, err
}
