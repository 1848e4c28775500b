// Package push sends a project's changes to an HTTP receiver, in the order of their numbers and one request at a time. It
// signs each request by the Standard Webhooks specification (https://www.standardwebhooks.com). The position advances
// after an answer of 2xx. So a request may come again, and a receiver drops the changes whose number is not greater than
// the last one that it stored.
package push

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// Options configure a [Destination].
type Options struct {
	// URL is the receiver's address. Its path may contain credentials, too: messages show its scheme and host alone.
	URL string
	// AllowHTTP accepts http for receivers on other machines.
	AllowHTTP bool
	// Secret is a secret of the specification, or two with a space between them during a rotation. SecretFile, if set, is a
	// file with them. It is read before each request.
	Secret, SecretFile string
	// Timeout bounds a request.
	Timeout time.Duration
	// Batch is the greatest number of changes of a request. A request that the receiver refuses for its content is sent again in parts.
	// So the receiver gets all changes that it takes, and the error names the change that it does not take.
	Batch int
	// Skip are the numbers of changes that are not sent.
	Skip []int64
	// From is where a new state starts, as the user gave it. A state that started elsewhere is refused, unless it is empty.
	From string
	// Note, if set, is called with texts for the user.
	Note func(text string)
	// Mask is that of [replicate.Options]. Requests lack the columns that it leaves out.
	Mask *replicate.Mask
	// Types are the types of changes that the source gives. A state belongs to them.
	Types  []client.ChangeType
	Source replicate.Source
	// Moved accepts a state that was made from another URL of the same project.
	Moved bool
	// State is the file of the position, or the URL of a Postgres database, which keeps it in the table push_state of Schema.
	// If it is empty, the position is lost with the process.
	State, Schema string
	// Resume sends again to a receiver that answered 410.
	Resume bool
}

// ErrStopped is in the chain of the error after the receiver answered 410, now or in an earlier run.
var ErrStopped = errors.New("the receiver wants no more changes (410)")

// Destination is a receiver. It is a [replicate.Destination].
type Destination struct {
	Options
	name   string
	client *http.Client
	store  store // nil if there is none
	state  state
	most   int // changes of the next request
}

// state has the position of a receiver, and the source that it belongs to.
type state struct {
	replicate.Source
	replicate.Position
	Types  string `json:"types,omitempty"`
	Masked string `json:"masked,omitempty"`
	From   string `json:"from,omitempty"`
	// StoppedAt is when the receiver answered 410; zero if it did not.
	StoppedAt time.Time `json:"stopped_at,omitzero"`
}

// New returns the receiver that o names. It does not connect. Its errors show neither secrets nor credentials.
func New(o Options) (*Destination, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("want https://HOST/PATH")
	}
	ip := net.ParseIP(u.Hostname())
	plain := o.AllowHTTP || u.Hostname() == "localhost" || ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !plain) {
		return nil, fmt.Errorf("%s was given for the host %s; allowed: https, and http for this machine or with --allow-http", u.Scheme, u.Hostname())
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck,forcetypeassert // net/http documents its type
	transport.DisableCompression = true
	d := &Destination{
		Options: o,
		most:    o.Batch,
		name:    fmt.Sprintf("receiver %s://%s", u.Scheme, u.Host),
		client: &http.Client{
			Transport: transport, Timeout: o.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	var types []string
	for _, t := range o.Types {
		types = append(types, string(t))
	}
	slices.Sort(types)
	d.state = state{Source: o.Source, Types: strings.Join(types, ","), Masked: o.Mask.String(), From: o.From}
	if _, err := d.hooks(); err != nil {
		return nil, err
	}
	d.store, err = newStore(o.State, o.Schema)
	return d, err
}

// String names the receiver without credentials.
func (d *Destination) String() string { return d.name }

// Full reports false: a receiver has no columns.
func (*Destination) Full() bool { return false }

// Limits returns the bounds of one request. Many receivers refuse a body of 1 MiB.
func (d *Destination) Limits() replicate.Limits {
	return replicate.Limits{Changes: d.Batch, Bytes: 512 << 10}
}

// Open locks the state and returns its position. It fails with ErrStopped if the receiver has answered 410.
func (d *Destination) Open(ctx context.Context) (replicate.Position, error) {
	if d.store == nil {
		return d.state.Position, nil
	}
	data, err := d.store.open(ctx)
	if err != nil {
		return replicate.Position{}, err
	}
	if err := d.load(data); err != nil {
		return replicate.Position{}, errors.Join(err, d.store.close())
	}
	return d.state.Position, nil
}

// load checks and uses a stored state. Without data, the state stays as it is.
func (d *Destination) load(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("the state is not one of lectern sync (%w): give another --state", err)
	}
	switch {
	case s.ProjectID != d.Source.ProjectID:
		return fmt.Errorf("the state is of project %q, not of %q: give another --state", s.ProjectID, d.Source.ProjectID)
	case s.URL != d.Source.URL && !d.Moved:
		return fmt.Errorf("the state is of the project at %s, not at %s: if this is the same deployment at a new address, give --moved; else another --state", s.URL, d.Source.URL)
	case s.Types != d.state.Types:
		return fmt.Errorf("the state has --types %q, not %q: give --types as before, or another --state", s.Types, d.state.Types)
	case d.From != "" && cmp.Or(s.From, beginning) != d.From:
		return fmt.Errorf("the state exists and started at %q, so --from %s would change nothing: leave --from out, or give another --state", cmp.Or(s.From, beginning), d.From)
	case !s.StoppedAt.IsZero() && !d.Resume:
		return fmt.Errorf("%w since %s: to send again, give --resume", ErrStopped, s.StoppedAt.Format(time.RFC3339))
	}
	if err := d.Mask.Check(s.Masked, "another --state"); err != nil {
		return err
	}
	s.Source, s.StoppedAt = d.Source, time.Time{}
	d.state = s
	return nil
}

// Apply sends a batch and stores the position after it.
func (d *Destination) Apply(ctx context.Context, b *replicate.Batch) error {
	next := d.state
	next.Position = b.Position
	changes := slices.DeleteFunc(slices.Clone(b.Changes), func(c client.Change) bool {
		skipped := slices.Contains(d.Skip, c.Seq)
		if skipped && d.Note != nil {
			d.Note(fmt.Sprintf("Change %d was skipped: the %s does not get it.", c.Seq, d))
		}
		return skipped
	})
	for len(changes) > 0 {
		n := max(1, min(d.most, len(changes)))
		err := d.send(ctx, changes[:n])
		if refused := (refusal{}); errors.As(err, &refused) && n > 1 {
			d.most = n / 2
			continue
		}
		if errors.Is(err, ErrStopped) {
			next, d.Resume = d.state, false
			next.StoppedAt = time.Now().UTC().Truncate(time.Second)
			return errors.Join(err, d.keep(ctx, next))
		}
		if err != nil {
			return err
		}
		changes, d.most = changes[n:], min(2*n, d.Batch)
	}
	return d.keep(ctx, next)
}

func (d *Destination) keep(ctx context.Context, next state) error {
	if d.store != nil && next != d.state {
		data, err := json.MarshalIndent(next, "", "  ")
		if err != nil {
			return err
		}
		if err := d.store.save(ctx, append(data, '\n')); err != nil {
			return err
		}
	}
	d.state = next
	return nil
}

// Close releases the state.
func (d *Destination) Close() error {
	if d.store == nil {
		return nil
	}
	return d.store.close()
}

// message is the body of a request.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      changes   `json:"data"`
}

// changes have the first and the last number of the list.
type changes struct {
	ProjectID string `json:"project_id"`
	FirstSeq  int64  `json:"first_seq"`
	LastSeq   int64  `json:"last_seq"`
	Changes   []any  `json:"changes"`
}

// send posts changes once.
func (d *Destination) send(ctx context.Context, list []client.Change) error {
	hooks, err := d.hooks()
	if err != nil {
		return replicate.Temporary(err) // somebody may be about to write the file
	}
	now := time.Now()
	records := make([]any, len(list))
	for i, c := range list {
		if records[i], err = d.masked(c); err != nil {
			return err
		}
	}
	m := message{"lectern.changes", now.UTC(), changes{d.Source.ProjectID, list[0].Seq, list[len(list)-1].Seq, records}}
	body, err := jsonv2.Marshal(m) // encoding/json escapes < and >, so that answers in HTML would grow
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	// A range of numbers only loses changes, so those with equal counts are equal. Their messages have the same id.
	id := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%d\n%d", d.Source.ProjectID, m.Data.FirstSeq, m.Data.LastSeq, len(list)))
	name := fmt.Sprintf("msg_%x", id[:12])
	var signatures []string
	for _, hook := range hooks {
		signature, err := hook.Sign(name, now, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "lectern-sync")
	request.Header.Set(standardwebhooks.HeaderWebhookID, name)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	err = d.post(request)
	if refused, ok := errors.AsType[refusal](err); ok && len(list) == 1 {
		return replicate.TemporaryFor(fmt.Errorf("%w to the change %d (%d bytes): let the receiver take it, or give --skip %[2]d for one run", refused, list[0].Seq, len(body)), refused.after)
	}
	return err
}

// refusal is an answer that says that the receiver does not take the content of a request.
type refusal struct {
	error
	after time.Duration // before which a retry is useless
}

// masked returns a change without the columns that the mask leaves out.
func (d *Destination) masked(c client.Change) (any, error) {
	var name string
	var record any
	switch {
	case len(d.Mask.Names()) == 0 || c.Removal != nil:
		return c, nil
	case c.Entry != nil:
		name, record = "entry", c.Entry
	default:
		name, record = "event", c.Event
	}
	record, err := d.Mask.Strip(record)
	return map[string]any{"change": c.Type, "seq": c.Seq, name: record}, err
}

// post sends a request, and makes an error of every answer but 2xx.
func (d *Destination) post(request *http.Request) error {
	response, err := d.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL
		}
		return replicate.Temporary(fmt.Errorf("%s: %w", d, err))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	switch status := response.StatusCode; {
	case status/100 == 2:
		return nil
	case status == http.StatusGone:
		return fmt.Errorf("%s: %w", d, ErrStopped)
	case status/100 == 3:
		return replicate.Temporary(fmt.Errorf("%s answers with a redirect (%d), which is not followed: give its new address", d, status))
	default:
		err := fmt.Errorf("%s answers %s", d, response.Status)
		after := min(client.RetryAfter(response.Header, time.Now()), longestWait)
		if status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity || status == http.StatusBadRequest {
			return refusal{err, after}
		}
		return replicate.TemporaryFor(err, after)
	}
}

// hooks returns a signer for each secret. Its errors do not show them.
func (d *Destination) hooks() ([]*standardwebhooks.Webhook, error) {
	text := d.Secret
	if d.SecretFile != "" {
		content, err := os.ReadFile(d.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("the file of the secret: %w", err)
		}
		text = string(content)
	}
	secrets := strings.Fields(text)
	if len(secrets) < 1 || len(secrets) > 2 {
		return nil, fmt.Errorf("there are %d secrets; allowed: one, or two during a rotation, in LECTERN_SYNC_SECRET or --secret-file", len(secrets))
	}
	var hooks []*standardwebhooks.Webhook
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefix))
		if err != nil || !strings.HasPrefix(secret, prefix) || len(key) < 24 || len(key) > 64 {
			return nil, fmt.Errorf("a secret was given in another form; allowed: %s and the base64 of 24 to 64 bytes", prefix)
		}
		hook, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, hook)
	}
	return hooks, nil
}

// longestWait bounds what a receiver may ask for by Retry-After.
const longestWait = time.Hour

const prefix = "whsec_"

// beginning is the default of Options.From.
const beginning = "beginning"

// Secret returns key as a secret of the specification, which has 24 to 64 bytes.
func Secret(key []byte) string { return prefix + base64.StdEncoding.EncodeToString(key) }
