package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// maxRejects is how many rejected lines an answer lists. The answer still counts the further rejected lines.
const maxRejects = 1000

// Kind describes one kind of record: its fields, how a record is checked, and how records are stored.
type Kind[T any] struct {
	// Resource names the records in metrics, as in the path: "entries".
	Resource string

	// Fields are all members that a record may have.
	Fields []Field[T]

	// Check checks a record as a whole, after its fields. Nil checks nothing.
	Check func(record *T) *Fault

	// Project returns the project that the record belongs to.
	Project func(record *T) string

	// Store stores records of one project in one transaction, in the order in which they came. Store is idempotent and
	// may be repeated when its error is [apierr.Unavailable]. If Store returns an error, it has stored nothing, or only
	// records that may be stored again. The slice is reused after Store has returned; the memory that the records point
	// to is not.
	Store func(ctx context.Context, projectID string, records []T) (Result, error)
}

// Result counts the outcomes of the records that a Store got. Records that are neither stored nor rejected existed
// already. Changed counts the stored records that replaced other content of the same id, even content from the same
// body.
type Result struct {
	Stored   int
	Changed  int
	Rejected []Rejected
}

// Rejected is a record that a Store rejected, with the reason.
type Rejected struct {
	Index int // in the records given
	Fault Fault
}

// Counted returns a Store that calls put and never rejects a record. put returns how many records it stored, and how
// many of these changed a stored record.
func Counted[T any](put func(ctx context.Context, projectID string, records []T) (stored, changed int, err error)) func(context.Context, string, []T) (Result, error) {
	return func(ctx context.Context, projectID string, records []T) (Result, error) {
		stored, changed, err := put(ctx, projectID, records)
		return Result{Stored: stored, Changed: changed}, err
	}
}

// Reject is a rejected line in a [Summary].
type Reject struct {
	Line    int64  `json:"line"` // from 1; blank lines count
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Summary is the answer to an ingest request: how many lines had each outcome, and the first 1,000 rejected lines in
// order.
type Summary struct {
	Stored   int64    `json:"stored"`
	Changed  int64    `json:"changed"` // of the stored
	Existing int64    `json:"existing"`
	Rejected int64    `json:"rejected"`
	Rejects  []Reject `json:"rejects"`
}

// Handler returns a handler that stores the records in the body of a POST. The body is NDJSON in UTF-8, plain or
// compressed by gzip or zstd. LF or CRLF ends a line, and the last line needs no end. Blank lines are skipped.
//
// The handler answers 200 with a [Summary] when it has read and stored the whole body, even if it rejected every line.
// The handler refuses a body of another type or coding with 415, and a broken compression with 400 invalid_body. If the
// Store fails, the answer is the error of the Store, such as 503. Earlier lines may then be stored, so the sender sends
// the whole body again. If the connection breaks or the sender is silent for too long, the handler ends without an
// answer.
//
// Handler panics if the fields of k cannot be the fields of one record.
func Handler[T any](k Kind[T], o Options) httpapi.HandlerFunc {
	o = o.withDefaults()
	shape := newShape(k.Fields)
	count := newCounter(o.MeterProvider, k.Resource)
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := checkType(r); err != nil {
			return err
		}
		b := newBody(w, r)
		summary, err := take(r, b, &run[T]{
			kind: k, options: o, parser: newParser(shape, k.Check), stopReading: b.stop, count: count,
			summary: Summary{Rejects: []Reject{}},
		})
		if err != nil {
			return answerFault(w, r, b, err)
		}
		return answer(w, summary)
	}
}

// take decompresses the body b and passes its lines to in, which stores the records. take returns the Summary.
func take[T any](r *http.Request, b *body, in *run[T]) (Summary, error) {
	source, closeSource, err := decompress(r, b)
	if err != nil {
		return Summary{}, err
	}
	defer closeSource()
	return in.all(r.Context(), &lines{source: source, max: in.options.MaxRecordBytes})
}

// answerFault returns the error for the client after take failed with err. If a Store failed, the connection is to end
// with the answer. If the connection broke in the middle of the body, answerFault panics with http.ErrAbortHandler.
func answerFault(w http.ResponseWriter, r *http.Request, b *body, err error) error {
	if _, ok := errors.AsType[*storeError](err); ok {
		// The deadline that ended the reading may also have ended the server's own read after the body, which waits
		// for the client to disconnect. The next request on this connection would then begin cancelled.
		w.Header().Set("Connection", "close")
		return err
	}
	if broken := b.connectionFault(); broken != nil {
		// The client is gone, or must not believe that half of its body was the whole.
		httpapi.InfoFrom(r.Context()).Err = broken
		panic(http.ErrAbortHandler)
	}
	if _, ok := errors.AsType[*apierr.Error](err); ok || r.Context().Err() != nil {
		return err
	}
	return apierr.New(apierr.InvalidBody, "The compressed body is broken ("+apierr.Shown(err.Error())+
		"). Lines before that place may be stored; send all again.").Because(err)
}

func answer(w http.ResponseWriter, s Summary) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	httpapi.WriteEncoded(w, append(body, '\n')) // records are stored, even if the client has disconnected
	return nil
}

// counter counts the lines of one resource by outcome, in the metric lectern.ingest.rows.
type counter struct {
	rows                       metric.Int64Counter
	stored, existing, rejected metric.MeasurementOption
}

func newCounter(p metric.MeterProvider, resource string) counter {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	outcome := func(name string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(
			attribute.String("resource", resource), attribute.String("outcome", name)))
	}
	rows, err := p.Meter("github.com/lectern-dev/lectern/shared/ingest").Int64Counter("lectern.ingest.rows",
		metric.WithDescription("Lines taken in, by resource and outcome: stored, existing or rejected."),
		metric.WithUnit("{row}"))
	if err != nil { // ingest works without the metric
		rows, _ = noop.NewMeterProvider().Meter("").Int64Counter("")
	}
	return counter{rows, outcome("stored"), outcome("existing"), outcome("rejected")}
}

func (c counter) add(ctx context.Context, stored, existing, rejected int) {
	for _, n := range []struct {
		count   int
		outcome metric.MeasurementOption
	}{{stored, c.stored}, {existing, c.existing}, {rejected, c.rejected}} {
		if n.count > 0 {
			c.rows.Add(ctx, int64(n.count), n.outcome)
		}
	}
}

// isEnd reports whether err is io.EOF, which means that a source ended without a fault.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
