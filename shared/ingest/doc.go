// Package ingest takes in records as NDJSON of any length, one record a line. The package reads strictly and stores in
// batches. A bad line is rejected by its number, and does not keep a good line from being stored. A million lines take
// no more memory than a thousand, because the package holds only two batches: it reads one and stores the other.
//
// A sender may send the same records again without harm, because the Store of a [Kind] is idempotent. So the package
// repeats a batch if the database was unavailable for a moment. The package acknowledges nothing before it has read and
// stored the whole body.
//
// The package knows no kind of record: a [Kind] names the fields and their rules. The server bounds how long a sender
// may be silent (READ_TIMEOUT of package httpserver).
package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/config"
)

// Options says how bodies are read. All kinds of a service use the same Options.
type Options struct {
	// The longest line that is accepted, in bytes after decompression and without its line end; the default is 16 MiB. A
	// longer line is rejected.
	MaxRecordBytes int `env:"MAX_RECORD_BYTES" envDefault:"16777216"`

	// How long a batch is retried while the database is unavailable. The request then fails with 503. 0 tries once.
	RetryTime time.Duration `env:"INGEST_RETRY_TIME" envDefault:"10s"`

	// MeterProvider counts the lines (lectern.ingest.rows by resource and outcome). Nil counts nothing.
	MeterProvider metric.MeterProvider `env:"-"`
}

const (
	// batchRecords is how many lines a batch has at most. Larger batches are hardly faster.
	batchRecords = 1000

	// batchBytes is the size in bytes of the lines at which a batch is stored before it has batchRecords lines. A request
	// holds at most two batches, each of up to this size and one line more.
	batchBytes = 4 << 20
)

// Validate reports each setting of the environment that is out of range. The error joins a [*config.Fault] for each.
func (o Options) Validate() error {
	var faults []error
	number := func(name string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, config.Invalid(name, value, fmt.Sprintf("%d to %d", least, most)))
		}
	}
	number("MAX_RECORD_BYTES", o.MaxRecordBytes, 1024, 512<<20)
	if o.RetryTime < 0 {
		faults = append(faults, config.Invalid("INGEST_RETRY_TIME", o.RetryTime, "0s or more"))
	}
	return errors.Join(faults...)
}

// withDefaults sets the default of MaxRecordBytes, so that a literal Options{} works.
func (o Options) withDefaults() Options {
	o.MaxRecordBytes = cmp.Or(o.MaxRecordBytes, 16<<20)
	return o
}
