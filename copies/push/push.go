// Package push sends a project's changes to an HTTP receiver, in the order of their numbers, with one request at a
// time. Each request is signed by the Standard Webhooks specification (https://www.standardwebhooks.com). The position
// advances after an answer of 2xx. So the receiver may get a request twice. The receiver should drop each change whose
// number is not greater than the number of the last change that the receiver stored.
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

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
)

// Options configure a [Destination]: the receiver, the secret for signatures, and where the position is stored.
type Options struct {
	// URL is the receiver's address. The path may contain credentials, so messages only show the scheme and the host.
	URL string
	// AllowHTTP accepts a URL with http for a receiver on another machine. Without AllowHTTP, such a receiver needs
	// https.
	AllowHTTP bool
	// Secret is a secret of the specification, such as whsec_BASE64. During a rotation, Secret is two secrets with a
	// space between them. SecretFile, if set, is the path of a file with the secret, which is read before each
	// request.
	Secret, SecretFile string
	// HeaderFile, if set, is the path of a file with headers that each request has, one a line: Name: value. Blank
	// lines, and lines that begin with #, are left out. The file is read before each request.
	HeaderFile string
	// Timeout is the longest time that a request to the receiver may take, including its answer; 0 is no bound.
	Timeout time.Duration
	// Batch is the greatest number of changes in a request. If the receiver refuses a request because of its content,
	// the request's changes are sent again in smaller requests. So the receiver gets the changes before the first one
	// that it refuses, and the error names that change.
	Batch int
	// Skip has the numbers of changes that are not sent. The user skips a change that the receiver always refuses.
	Skip []int64
	// From is where a new state starts, as the user gave it; "" for the beginning. An existing state that started
	// elsewhere is an error, unless From is empty.
	From string
	// Note, if set, is called with a text for the user, such as a skipped change.
	Note func(text string)
	// Mask is the same as that of [copies.Options]. Requests lack the columns that the mask leaves out.
	Mask *copies.Mask
	// Types are the types of changes that the source sends. A stored state with other types is an error.
	Types  []client.ChangeType
	Source copies.Source
	// Moved accepts a state that was made from another URL of the same project.
	Moved bool
	// State is where the position is stored: the path of a file, or the URL of a Postgres database. The database has
	// the position in the table push_state of Schema. If State is empty, the position is lost when the process ends.
	State, Schema string
	// Resume accepts a state whose receiver answered 410, and sends to the receiver again.
	Resume bool
}

// ErrStopped is in the chain of the error if the receiver answered 410, now or in an earlier run.
var ErrStopped = errors.New("the receiver wants no more changes (410)")

// Destination sends batches to an HTTP receiver and stores the position. Destination is a [copies.Destination].
type Destination struct {
	Options
	name   string
	client *http.Client
	store  store // nil if the position is not stored
	state  state
	most   int // greatest number of changes in the next request
}

// state is the stored position of a receiver, with the source and the options that the position belongs to.
type state struct {
	copies.Source
	copies.Position
	Types  string `json:"types,omitempty"`
	Masked string `json:"masked,omitempty"`
	From   string `json:"from,omitempty"`
	// StoppedAt is when the receiver answered 410; zero if the receiver did not.
	StoppedAt time.Time `json:"stopped_at,omitzero"`
}

// made returns the facts with which the state was made.
func (s *state) made() copies.Made {
	return copies.Made{Source: s.Source, Settings: []copies.Setting{{Flag: "--types", Value: s.Types}}, Masked: s.Masked}
}

// New returns the destination that o describes, without connecting. An invalid URL, secret, HeaderFile or State is an
// error. Errors do not show secrets and credentials.
func New(o Options) (*Destination, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("want https://HOST/PATH")
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return nil, fmt.Errorf("the port is %s; allowed: 1 to 65535", u.Port())
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
	if _, err := d.headers(); err != nil {
		return nil, err
	}
	d.store, err = newStore(o.State, o.Schema)
	return d, err
}

// String returns the scheme and the host of the receiver for messages, without credentials.
func (d *Destination) String() string { return d.name }

// Remarks returns nil: requests have all data as it is.
func (*Destination) Remarks() []string { return nil }

// Traits returns that a receiver gets the changes of the feed alone, and is tried for ever.
func (*Destination) Traits() copies.Traits { return copies.Traits{Endless: true} }

// Limits returns how many changes and bytes a batch may have: 512 KiB, because many receivers refuse a body of 1 MiB.
func (d *Destination) Limits() copies.Limits {
	return copies.Limits{Changes: d.Batch, Bytes: 512 << 10}
}

// Open locks the stored state and returns its position. The error has [ErrStopped] in its chain if the receiver
// answered 410 in an earlier run, unless Resume is set.
func (d *Destination) Open(ctx context.Context) (copies.Position, error) {
	if d.store == nil {
		return d.state.Position, nil
	}
	data, err := d.store.open(ctx)
	if err != nil {
		return copies.Position{}, err
	}
	if err := d.load(data); err != nil {
		return copies.Position{}, errors.Join(err, d.store.close())
	}
	return d.state.Position, nil
}

// load checks a stored state against the options, and uses it. If data is empty, there is no stored state, and d.state
// stays as New made it.
func (d *Destination) load(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("the state is not one of lectern sync (%w): give another --state", err)
	}
	if err := s.made().Check(d.state.made(), d.Mask, d.Moved, "the state is one", "another --state"); err != nil {
		return err
	}
	switch {
	case d.From != "" && cmp.Or(s.From, beginning) != d.From:
		return fmt.Errorf("the state exists and started at %q, so --from %s would change nothing: leave --from out, or give another --state", cmp.Or(s.From, beginning), d.From)
	case !s.StoppedAt.IsZero() && !d.Resume:
		return fmt.Errorf("%w since %s: to send again, give --resume", ErrStopped, s.StoppedAt.Format(time.RFC3339))
	}
	s.Source, s.StoppedAt = d.Source, time.Time{}
	d.state = s
	return nil
}

// Apply sends the changes of a batch, without those in Skip, in requests of at most Batch changes. Then Apply stores
// the position after the batch. A refused request with several changes is sent again in smaller requests. After an
// answer of 410, Apply stores that the receiver stopped.
func (d *Destination) Apply(ctx context.Context, b *copies.Batch) error {
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
		if err != nil {
			return d.stopped(ctx, err)
		}
		changes, d.most = changes[n:], min(2*n, d.Batch)
	}
	return d.keep(ctx, next)
}

// stopped returns err, the error of a request. If the receiver answered 410, the state notes that.
func (d *Destination) stopped(ctx context.Context, err error) error {
	if !errors.Is(err, ErrStopped) {
		return err
	}
	next := d.state
	d.Resume = false
	next.StoppedAt = time.Now().UTC().Truncate(time.Second)
	return errors.Join(err, d.keep(ctx, next))
}

// Lose sends a message of the type history_lost, with the numbers that the source has lost.
func (d *Destination) Lose(ctx context.Context, lost *client.HistoryLostError) error {
	data := loss{d.Source.ProjectID, lost.After, lost.Until}
	_, err := d.sendSigned(ctx, fmt.Sprintf("%s\nhistory_lost\n%d\n%d", d.Source.ProjectID, lost.After, d.state.Seq), "history_lost", data)
	if refused, ok := errors.AsType[refusal](err); ok {
		err = copies.TemporaryFor(fmt.Errorf("%w to the message history_lost: let the receiver take it", refused), refused.after)
	}
	return d.stopped(ctx, err)
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

// Close releases the lock of the stored state.
func (d *Destination) Close() error {
	if d.store == nil {
		return nil
	}
	return d.store.close()
}

// message is the JSON body of a request, in the form of the Standard Webhooks specification.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// loss is the data of a message of the type history_lost: the numbers between After and Until are lost.
type loss struct {
	ProjectID string `json:"project_id"`
	After     int64  `json:"after"`
	Until     *int64 `json:"until"`
}

// changes is the data of a message: changes in their order, with the first and the last of their numbers.
type changes struct {
	ProjectID string `json:"project_id"`
	FirstSeq  int64  `json:"first_seq"`
	LastSeq   int64  `json:"last_seq"`
	Changes   []any  `json:"changes"`
}

// send posts the changes in list in one signed request. If the receiver refuses a request with one change, the error
// names the change.
func (d *Destination) send(ctx context.Context, list []client.Change) (err error) {
	records := make([]any, len(list))
	for i, c := range list {
		if records[i], err = d.masked(c); err != nil {
			return err
		}
	}
	data := changes{d.Source.ProjectID, list[0].Seq, list[len(list)-1].Seq, records}
	// The same range and count are the same changes, because a range can only lose changes.
	size, err := d.sendSigned(ctx, fmt.Sprintf("%s\n%d\n%d\n%d", d.Source.ProjectID, data.FirstSeq, data.LastSeq, len(list)), "lectern.changes", data)
	if refused, ok := errors.AsType[refusal](err); ok && len(list) == 1 {
		return copies.TemporaryFor(fmt.Errorf("%w to the change %d (%d bytes): let the receiver take it, or give --skip %[2]d for one run", refused, list[0].Seq, size), refused.after)
	}
	return err
}

// sendSigned posts a signed message, and returns the size of its body. A repeated request has the same message id, a digest of
// identity.
func (d *Destination) sendSigned(ctx context.Context, identity, kind string, data any) (size int, err error) {
	hooks, err := d.hooks()
	if err != nil {
		return 0, copies.Temporary(err) // the file of the secret may be incomplete for a moment
	}
	headers, err := d.headers()
	if err != nil {
		return 0, copies.Temporary(err)
	}
	now := time.Now()
	body, err := jsonv2.Marshal(message{kind, now.UTC(), data}) // encoding/json would escape < and >, which makes answers in HTML longer
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	id := sha256.Sum256([]byte(identity))
	name := fmt.Sprintf("msg_%x", id[:12])
	var signatures []string
	for _, hook := range hooks {
		signature, err := hook.Sign(name, now, body)
		if err != nil {
			return 0, err
		}
		signatures = append(signatures, signature)
	}
	request.Header = headers
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "lectern-sync")
	request.Header.Set(standardwebhooks.HeaderWebhookID, name)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return len(body), d.post(request)
}

// refusal is the error for an answer that refuses the content of a request: 400, 413 or 422. Smaller requests may
// succeed.
type refusal struct {
	error
	after time.Duration // how long a retry is useless
}

// masked returns a change as it is sent: without the columns that the mask leaves out.
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

// post sends a request once. post returns an error for each answer other than 2xx, and for no answer.
func (d *Destination) post(request *http.Request) error {
	response, err := d.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may contain credentials
		}
		return copies.Temporary(fmt.Errorf("%s: %w", d, err))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	switch status := response.StatusCode; {
	case status/100 == 2:
		return nil
	case status == http.StatusGone:
		return fmt.Errorf("%s: %w", d, ErrStopped)
	case status/100 == 3:
		return copies.Temporary(fmt.Errorf("%s answers with a redirect (%d), which is not followed: give its new address", d, status))
	default:
		err := fmt.Errorf("%s answers %s", d, response.Status)
		after := min(client.RetryAfter(response.Header, time.Now()), longestWait)
		if status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity || status == http.StatusBadRequest {
			return refusal{err, after}
		}
		return copies.TemporaryFor(err, after)
	}
}

// headers returns the headers of HeaderFile, or none.
func (d *Destination) headers() (http.Header, error) {
	if d.HeaderFile == "" {
		return http.Header{}, nil
	}
	return readHeaders(d.HeaderFile)
}

// hooks returns a signer for each secret, one or two. A missing or malformed secret is an error, which does not show
// the secret.
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

// longestWait is the longest wait that a receiver can require by the header Retry-After.
const longestWait = time.Hour

const prefix = "whsec_"

// beginning is the value of Options.From for a state that starts at the beginning of the feed. An empty From means
// beginning.
const beginning = "beginning"

// Secret returns key, of 24 to 64 bytes, as a secret in the form of the specification: whsec_ and base64.
func Secret(key []byte) string { return prefix + base64.StdEncoding.EncodeToString(key) }
