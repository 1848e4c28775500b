package destination

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/push"
)

// ReceiverFlags are the flags of a command that sends changes to a receiver of webhooks.
type ReceiverFlags struct {
	Types      []string      `enum:"entry,event,entry_removed" help:"Receivers only: the types of changes to send: entry, event, entry_removed. Default: all." placeholder:"TYPE"`
	Skip       []string      `help:"Receivers only: the number of a change that this run does not send. Repeat the flag for more." placeholder:"SEQ"`
	Batch      int           `default:"100" help:"Receivers only: changes a request. Default: ${default}." placeholder:"N"`
	From       string        `help:"Receivers only: where a new state starts: beginning, now, or after the change with a number." placeholder:"beginning|now|SEQ"`
	State      string        `env:"LECTERN_SYNC_STATE" help:"Receivers only: where the position is kept: a file, or postgres://USER@HOST:PORT/DATABASE, in a table of --schema. One for each receiver." placeholder:"FILE|URL"`
	SecretFile string        `type:"path" env:"LECTERN_SYNC_SECRET_FILE" help:"Receivers only: a file with the secret, which is read before each request. Default: the variable LECTERN_SYNC_SECRET." placeholder:"FILE"`
	HeaderFile string        `type:"path" env:"LECTERN_SYNC_HEADER_FILE" help:"Receivers only: a file with headers of each request, one a line as NAME: VALUE, which is read before each request." placeholder:"FILE"`
	Timeout    time.Duration `default:"30s" help:"Receivers only: how long an answer may take. Default: ${default}." placeholder:"DURATION"`
	AllowHTTP  bool          `name:"allow-http" help:"Receivers only: also send to other machines without TLS."`
}

// given reports whether --types, --from, --state, --header-file or --skip was given. The other flags for receivers are
// not checked.
func (f *ReceiverFlags) given() bool {
	return len(f.Types) > 0 || f.From != "" || f.State != "" || f.HeaderFile != "" || len(f.Skip) > 0
}

// Query returns the query of the change feed for the changes that --from and --types select.
func (f *ReceiverFlags) Query() client.ChangeQuery {
	q := client.ChangeQuery{After: f.From}
	if f.From == "beginning" {
		q.After = ""
	}
	for _, t := range f.Types {
		q.Types = append(q.Types, client.ChangeType(t))
	}
	return q
}

// OpenReceiver returns the receiver that o names, with the settings of the flags. flag is the flag that gave o.URL,
// for the text of errors.
func (f *ReceiverFlags) OpenReceiver(flag string, o push.Options) (*push.Destination, error) {
	if _, err := strconv.ParseUint(f.From, 10, 63); err != nil && f.From != "" && f.From != "beginning" && f.From != "now" {
		return nil, shell.Usagef("--from was given as %q; allowed: beginning, now, the number of a change", f.From)
	}
	for _, text := range f.Skip {
		seq, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, shell.Usagef("--skip was given as %q; allowed: the number of a change", text)
		}
		o.Skip = append(o.Skip, seq)
	}
	o.From = f.From
	o.Types, o.Batch, o.State, o.SecretFile, o.HeaderFile, o.Timeout, o.AllowHTTP = f.Query().Types, f.Batch, f.State, f.SecretFile, f.HeaderFile, f.Timeout, f.AllowHTTP
	d, err := push.New(o)
	if err != nil {
		return nil, shell.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	return d, nil
}
