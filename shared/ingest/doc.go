// Package ingest owns how data comes in: NDJSON of any length, one record a line, read strictly and
// stored in batches of one project each. A bad line is rejected by its number and never loses a good
// one; a million lines take no more memory than a thousand, as the next batch is read while one is
// stored and then waits.
//
// What is stored may be sent again without harm (the Store of a [Kind] is idempotent), so a batch is
// repeated when the database could not take it for a moment, and nothing is acknowledged before the
// whole body was read.
//
// It refuses to know any record: a [Kind] names its fields and what they may hold. How long a sender may be silent
// is the server's to bound (READ_TIMEOUT of package httpserver).
package ingest

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/config"
)

// Options say how bodies are read. All kinds of a service take the same.
type Options struct {
	// The longest line that is taken, in bytes after decompression and without its end; the default is
	// 16 MiB. A longer one is skipped unread and rejected.
	MaxRecordBytes int `env:"MAX_RECORD_BYTES" envDefault:"16777216"`

	// How many lines are stored at a time.
	BatchRecords int `env:"INGEST_BATCH_RECORDS" envDefault:"1000"`

	// How many bytes of lines close a batch early. A request holds at most two batches, each of this size
	// and one line more.
	BatchBytes int `env:"INGEST_BATCH_BYTES" envDefault:"4194304"`

	// For how long a batch is tried again that the database cannot take; the request
	// then fails with 503. 0 tries once.
	RetryTime time.Duration `env:"INGEST_RETRY_TIME" envDefault:"10s"`

	// MeterProvider counts the lines (lectern.ingest.rows by resource and outcome); nil counts
	// nothing.
	MeterProvider metric.MeterProvider `env:"-"`
}

// Validate reports every setting that is out of range.
func (o Options) Validate() error {
	var faults []error
	number := func(name string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, config.Invalid(name, value, fmt.Sprintf("%d to %d", least, most)))
		}
	}
	number("MAX_RECORD_BYTES", o.MaxRecordBytes, 1024, 512<<20)
	number("INGEST_BATCH_RECORDS", o.BatchRecords, 1, 100_000)
	number("INGEST_BATCH_BYTES", o.BatchBytes, 1024, 512<<20)
	if o.RetryTime < 0 {
		faults = append(faults, config.Invalid("INGEST_RETRY_TIME", o.RetryTime, "0s or more"))
	}
	return errors.Join(faults...)
}

// withDefaults fills what is zero and may not be, so that a literal Options{} is a working one.
func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *int
		usual int
	}{{&o.MaxRecordBytes, 16 << 20}, {&o.BatchRecords, 1000}, {&o.BatchBytes, 4 << 20}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	return o
}
