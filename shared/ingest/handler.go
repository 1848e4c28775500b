package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

// maxRejects is how many rejected lines an answer lists; they are counted all.
const maxRejects = 1000

// Kind is a kind of record that comes in.
type Kind[T any] struct {
	// Resource names the records in metrics, as in the path: "entries".
	Resource string

	// Fields are all members that a record may have.
	Fields []Field[T]

	// Check judges a record as a whole, after its fields; nil judges nothing.
	Check func(record *T) *Fault

	// Project returns the project that the record belongs to.
	Project func(record *T) string

	// Store stores records of one project, in the order in which they came, in one transaction. It is
	// idempotent and is repeated when its error is [apierr.Unavailable]. With an error nothing was
	// stored, or what was stored may be so again. The slice is used again when Store has returned;
	// what the records point to is not.
	Store func(ctx context.Context, projectID string, records []T) (Result, error)
}

// Result is what became of the records given to a Store. Those that are neither stored nor rejected
// existed already.
type Result struct {
	Stored   int
	Rejected []Rejected
}

// Rejected is a record that a Store did not take.
type Rejected struct {
	Index int // in the records given
	Fault Fault
}

// Counted makes a Store of what stores records that are never rejected, and tells how many of them
// changed what was stored.
func Counted[T any](put func(ctx context.Context, projectID string, records []T) (stored int, err error)) func(context.Context, string, []T) (Result, error) {
	return func(ctx context.Context, projectID string, records []T) (Result, error) {
		stored, err := put(ctx, projectID, records)
		return Result{Stored: stored}, err
	}
}

// Reject is a rejected line in an answer.
type Reject struct {
	Line    int64  `json:"line"` // from 1; blank lines count
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Summary is the answer: exact counts, and the first 1,000 rejected lines in their order.
type Summary struct {
	Stored   int64    `json:"stored"`
	Existing int64    `json:"existing"`
	Rejected int64    `json:"rejected"`
	Rejects  []Reject `json:"rejects"`
}

// Handler takes in records of kind k as the body of a POST: NDJSON in UTF-8, plain, gzip or zstd. Blank
// lines are passed over; LF and CRLF end a line; the last needs no end.
//
// It answers 200 with a [Summary] when the body was read whole, also when no line was good; 415 for a
// body of another type; 400 invalid_body for a broken compression; 503 when a batch could not be
// stored. Batches before a failure may be stored: the sender sends all again. A connection that breaks
// off or falls silent is ended without an answer.
//
// It panics when k's fields are not a record's.
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

// take reads and stores a whole body.
func take[T any](r *http.Request, b *body, in *run[T]) (Summary, error) {
	source, closeSource, err := decompress(r, b)
	if err != nil {
		return Summary{}, err
	}
	defer closeSource()
	return in.all(r.Context(), &lines{source: source, max: in.options.MaxRecordBytes})
}

// answerFault returns the error to answer, or ends the connection if the body broke off.
func answerFault(w http.ResponseWriter, r *http.Request, b *body, err error) error {
	if _, ok := errors.AsType[*storeError](err); ok {
		// The deadline that ended the reading may have met the server's own read for the client's end,
		// just after the body's. The next request on this connection would then begin cancelled.
		w.Header().Set("Connection", "close")
		return err
	}
	if broken := b.connectionFault(); broken != nil {
		// The client is gone, or must not take half of its body for the whole.
		httpapi.InfoFrom(r.Context()).Err = broken
		panic(http.ErrAbortHandler)
	}
	if _, ok := errors.AsType[*apierr.Error](err); ok || r.Context().Err() != nil {
		return err
	}
	return apierr.New(apierr.InvalidBody, "The compressed body is broken ("+cut(err.Error())+
		"). Lines before that place may be stored; send all again.").Because(err)
}

func answer(w http.ResponseWriter, s Summary) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have disconnected; its records are stored
	return nil
}

// counter counts lines by what became of them.
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
	if err != nil { // the instrument does nothing then, and ingest goes on
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

// isEnd reports whether a source ended as it should.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
