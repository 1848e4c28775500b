package read

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/destination"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/push"
)

// Listen is the command lectern listen, which sends the changes of a project to a receiver of webhooks and prints them.
// The receiver is usually on this machine.
type Listen struct {
	shell.APIFlags
	destination.ReceiverFlags
	ForwardTo   string `help:"The receiver, such as http://localhost:3000/hook, localhost:3000 or 3000." placeholder:"URL"`
	Replay      string `help:"Send the changes of these numbers again, and end." placeholder:"SEQ..SEQ"`
	PrintSecret bool   `help:"Print the secret that signs, and end."`
}

// Help returns the text of lectern listen --help: the secret, the output, and examples.
func (Listen) Help() string {
	return `The command sends each new change to the receiver, as lectern sync --to https://… does, and prints its number, its type and its entry. It keeps no position, unless you give --state.

The secret is that of LECTERN_SYNC_SECRET or --secret-file. Without them it is derived from the API key, so it stays the same. A token derives none.

Examples:

	export WEBHOOK_SECRET=$(lectern listen --print-secret)
	lectern listen --forward-to http://localhost:3000/hook
	lectern listen --forward-to http://localhost:3000/hook --from beginning
	lectern listen --forward-to http://localhost:3000/hook --replay 1795390521125314..1795390521125390`
}

// Run sends changes to the receiver until the user interrupts the command, or sends the changes of --replay once.
// Without --from, --state and --replay, Run begins with new changes. With --print-secret, Run only prints the secret
// that signs requests.
func (f *Listen) Run(s *shell.Session) error {
	secret := s.Environ["LECTERN_SYNC_SECRET"]
	if secret == "" && f.SecretFile == "" {
		key, err := f.Key()
		if err != nil {
			return err
		}
		if f.Token != nil {
			return shell.Usagef("no secret: with a token, give --secret-file or LECTERN_SYNC_SECRET; only an API key can derive one")
		}
		derived := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(derived, "lectern listen\n%s", f.Project)
		secret = push.Secret(derived.Sum(nil))
	}
	if f.PrintSecret {
		if f.SecretFile != "" {
			return shell.Usagef("--print-secret and --secret-file were both given; allowed: one of them")
		}
		_, err := fmt.Fprintln(s.Out, secret)
		return err
	}
	if f.ForwardTo == "" {
		return shell.Usagef("--forward-to is missing: the URL of the receiver")
	}
	f.ForwardTo = receiverURL(f.ForwardTo)
	if u, err := url.Parse(f.ForwardTo); err == nil && u.Hostname() == "host.docker.internal" {
		f.AllowHTTP = true // this machine, seen from a container
	}
	to := &printed{out: s.Out}
	if f.From == "" {
		f.From = "now"
	}
	if f.Replay != "" {
		if f.State != "" {
			return shell.Usagef("--replay and --state were both given; allowed: one of them")
		}
		var err error
		if f.From, to.last, err = f.replay(); err != nil {
			return err
		}
	}
	reader, err := f.Client(shell.Patient(10), s.Err)
	if err != nil {
		return err
	}
	source := copies.Source{URL: f.URL, ProjectID: f.Project}
	if to.Destination, err = f.OpenReceiver("--forward-to", push.Options{URL: f.ForwardTo, Secret: secret, Source: source, Schema: "lectern"}); err != nil {
		return err
	}
	result, err := copies.Run(s.Context, copies.Options{
		Client: reader, Source: source, Destination: to, Query: f.Query(), Follow: to.last == 0, PageSize: 1000, Attempts: client.Forever, Notify: shell.Notifier(s.Err),
	})
	if errors.Is(err, errReplayed) {
		err = nil
	}
	if err == nil {
		s.Note("Sent %s to the %s.", counted(result.Changes+to.trimmed, "change", "changes"), to)
	}
	return err
}

// receiverURL returns the URL for an address such as 3000 or localhost:3000/hook. An address with a scheme is
// returned unchanged.
func receiverURL(address string) string {
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		return "http://localhost:" + address
	}
	if !strings.Contains(address, "://") {
		return "http://" + address
	}
	return address
}

// replay returns the range of --replay: the number before its first change, and the number of its last change.
func (f *Listen) replay() (before string, last int64, err error) {
	from, to, _ := strings.Cut(f.Replay, "..")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first {
		return "", 0, shell.Usagef("--replay was given as %q; allowed: SEQ..SEQ, with the smaller number first", f.Replay)
	}
	return strconv.FormatInt(first-1, 10), last, nil
}

// errReplayed ends the copy after the last change of a replay. [Listen.Run] does not report errReplayed as an error.
var errReplayed = errors.New("all was sent again")

// printed is a receiver of webhooks. The changes of a batch are printed after the receiver accepted the batch.
type printed struct {
	*push.Destination
	out     io.Writer
	last    int64 // the number after which a replay ends; 0: it does not end
	trimmed int64 // the changes of the batch at the end of a replay
}

// Lose tells the receiver what the source has lost. A replay ends with an error instead.
func (p *printed) Lose(ctx context.Context, lost *client.HistoryLostError) error {
	if p.last > 0 {
		return lost
	}
	return p.Destination.Lose(ctx, lost)
}

// Apply sends a batch to the receiver and then prints its changes, one a line. If the batch has changes after the end
// of a replay, Apply leaves them out and returns [errReplayed].
func (p *printed) Apply(ctx context.Context, b *copies.Batch) error {
	end := slices.IndexFunc(b.Changes, func(c client.Change) bool { return p.last > 0 && c.Seq > p.last })
	if end >= 0 {
		b.Changes = b.Changes[:end]
		p.trimmed = int64(end)
	}
	if err := p.Destination.Apply(ctx, b); err != nil {
		return err
	}
	for _, c := range b.Changes {
		var id string
		switch c.Type {
		case client.EntryChanged:
			id = c.Entry.EntryID
		case client.EventAdded:
			id = c.Event.EntryID
		case client.EntryRemoved:
			id = c.Removal.EntryID
		}
		if _, err := fmt.Fprintf(p.out, "%d  %-13s  %s\n", c.Seq, c.Type, id); err != nil {
			return err
		}
	}
	if end >= 0 {
		return errReplayed
	}
	return nil
}
