package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/panics"
)

// run stores the records of one body. One goroutine reads and parses a batch, while another goroutine stores the
// batch before. There are only two batches, so the memory is bounded.
type run[T any] struct {
	kind        Kind[T]
	options     Options
	parser      *parser[T]
	stopReading func() // ends a read that waits
	count       counter

	summary Summary // written only by the storing goroutine, until it has ended
	sorted  []T     // of the storing goroutine: records of one project
}

// batch has the records and the rejected lines of consecutive lines of a body. The records of a batch are stored
// together.
type batch[T any] struct {
	records []T
	lines   []int64 // of the records
	rejects []Reject
	bytes   int
}

func (b *batch[T]) reset() {
	clear(b.records) // frees the memory that the records point to
	b.records, b.lines, b.rejects, b.bytes = b.records[:0], b.lines[:0], b.rejects[:0], 0
}

// storeError wraps the error of a Store, to distinguish a failure of the database from a fault of the body.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// all reads all lines of l, stores the records, and returns the Summary. The error is a [*storeError] or the error
// with which l ended. A panic of the Store reaches the caller.
func (r *run[T]) all(ctx context.Context, l *lines) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	full := make(chan *batch[T])
	free := make(chan *batch[T], 2)
	free <- &batch[T]{}
	free <- &batch[T]{}
	stored := make(chan error, 1)
	failed := make(chan struct{})
	go func() {
		err := r.storeAll(ctx, full, free)
		if err != nil {
			close(failed)
			r.stopReading()
		}
		stored <- err
	}()
	readErr := r.readAll(l, full, free, failed)
	if readErr != nil {
		cancel() // nothing of this body will be acknowledged, so the rest need not be stored
	}
	close(full)
	storeErr := <-stored
	panics.Rethrow(storeErr)
	if readErr != nil && !errors.Is(readErr, errStopped) && errors.Is(storeErr, context.Canceled) {
		storeErr = nil // readErr caused the cancellation
	}
	if storeErr != nil {
		return Summary{}, &storeError{storeErr}
	}
	return r.summary, readErr
}

// readAll takes batches from free, fills them with lines and sends them to full, until the lines end. If failed is
// closed before that, readAll may stop with errStopped.
func (r *run[T]) readAll(l *lines, full, free chan *batch[T], failed chan struct{}) error {
	for {
		var b *batch[T]
		select {
		case b = <-free:
		case <-failed:
			return errStopped
		}
		err := r.fill(b, l)
		if err != nil && !isEnd(err) {
			return err
		}
		if len(b.records)+len(b.rejects) > 0 {
			select {
			case full <- b:
			case <-failed:
				return errStopped
			}
		}
		if err != nil {
			return nil
		}
	}
}

// fill reads lines into b until b is full or the lines end. The error is that of the lines, io.EOF at their end.
func (r *run[T]) fill(b *batch[T], l *lines) error {
	b.reset()
	for len(b.records)+len(b.rejects) < batchRecords && b.bytes < batchBytes {
		line, tooLong, err := l.next()
		if err != nil {
			return err
		}
		if tooLong {
			b.rejects = append(b.rejects, Reject{l.number, RecordTooLarge,
				fmt.Sprintf("The line is longer than %d bytes.", r.options.MaxRecordBytes)})
			continue
		}
		if blank(line) {
			continue
		}
		b.bytes += len(line)
		n := len(b.records)
		var zero T
		b.records = append(b.records, zero)
		if fault := r.parser.parse(line, &b.records[n]); fault != nil {
			b.records = b.records[:n]
			b.rejects = append(b.rejects, Reject{l.number, fault.Code, fault.Message})
			continue
		}
		b.lines = append(b.lines, l.number)
	}
	return nil
}

func blank(line []byte) bool { return len(bytes.Trim(line, " \t\r")) == 0 }

// storeAll stores the batches from full and returns them to free, until full is closed or a batch fails. A panic
// becomes the error.
func (r *run[T]) storeAll(ctx context.Context, full, free chan *batch[T]) (err error) {
	defer panics.Catch(&err)
	for b := range full {
		if err := r.storeBatch(ctx, b); err != nil {
			return err
		}
		free <- b
	}
	return nil
}

// storeBatch stores the records of b, one project at a time, and adds the outcomes of the lines to the summary and to
// the metric.
func (r *run[T]) storeBatch(ctx context.Context, b *batch[T]) error {
	stored, changed, refused := 0, 0, 0
	err := r.byProject(b, func(project string, records []T, lines []int64) error {
		result, err := r.storeRecords(ctx, project, records)
		if err != nil {
			return err
		}
		stored += result.Stored
		changed += result.Changed
		refused += len(result.Rejected)
		for _, reject := range result.Rejected {
			b.rejects = append(b.rejects, Reject{lines[reject.Index], reject.Fault.Code, reject.Fault.Message})
		}
		return nil
	})
	if err != nil {
		return err
	}
	existing, rejected := len(b.records)-stored-refused, len(b.rejects)
	slices.SortFunc(b.rejects, func(x, y Reject) int { return cmp.Compare(x.Line, y.Line) })
	s := &r.summary
	s.Stored += int64(stored)
	s.Changed += int64(changed)
	s.Existing += int64(existing)
	s.Rejected += int64(rejected)
	s.Rejects = append(s.Rejects, b.rejects[:min(len(b.rejects), maxRejects-len(s.Rejects))]...)
	r.count.add(ctx, stored, existing, rejected)
	return nil
}

// byProject calls store once for each project in b, with the project's records and the numbers of their lines, in the
// order of the lines. byProject stops at the first error.
func (r *run[T]) byProject(b *batch[T], store func(project string, records []T, lines []int64) error) error {
	if len(b.records) == 0 {
		return nil
	}
	first := r.kind.Project(&b.records[0])
	mixed := false
	for i := range b.records {
		if r.kind.Project(&b.records[i]) != first {
			mixed = true
			break
		}
	}
	if !mixed {
		return store(first, b.records, b.lines)
	}
	indexes := make(map[string][]int)
	var projects []string
	for i := range b.records {
		p := r.kind.Project(&b.records[i])
		if indexes[p] == nil {
			projects = append(projects, p)
		}
		indexes[p] = append(indexes[p], i)
	}
	defer func() { clear(r.sorted[:cap(r.sorted)]) }()
	for _, p := range projects {
		r.sorted = r.sorted[:0]
		lines := make([]int64, 0, len(indexes[p]))
		for _, i := range indexes[p] {
			r.sorted = append(r.sorted, b.records[i])
			lines = append(lines, b.lines[i])
		}
		if err := store(p, r.sorted, lines); err != nil {
			return err
		}
	}
	return nil
}

// storeRecords stores records of one project. If the database refuses the content of one record, which the rules of
// the fields should have found, only that record is rejected. To find the record, storeRecords stores each half
// separately.
func (r *run[T]) storeRecords(ctx context.Context, project string, records []T) (Result, error) {
	result, err := r.storeWithRetry(ctx, project, records)
	state, refused := refusedContent(err)
	if !refused {
		return result, err
	}
	if len(records) == 1 {
		return Result{Rejected: []Rejected{{Fault: Fault{InvalidField,
			"The database does not take this record (SQLSTATE " + state + ")."}}}}, nil
	}
	half := len(records) / 2
	low, err := r.storeRecords(ctx, project, records[:half])
	if err != nil {
		return Result{}, err
	}
	high, err := r.storeRecords(ctx, project, records[half:])
	if err != nil {
		return Result{}, err
	}
	for _, reject := range high.Rejected {
		reject.Index += half
		low.Rejected = append(low.Rejected, reject)
	}
	low.Stored += high.Stored
	low.Changed += high.Changed
	return low, nil
}

// refusedContent returns the SQLSTATE of err, and reports whether err is about the content of a record. Errors about
// content are data exceptions (class 22), missing or refused values (23502, 23514) and limits of the program (class
// 54).
func refusedContent(err error) (state string, refused bool) {
	var sql interface{ SQLState() string }
	if _, known := errors.AsType[*apierr.Error](err); known || !errors.As(err, &sql) {
		return "", false
	}
	state = sql.SQLState()
	if len(state) != 5 {
		return state, false
	}
	return state, state[:2] == "22" || state[:2] == "54" || state == "23502" || state == "23514"
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// storeWithRetry stores records, and retries for RetryTime while the database is unavailable.
func (r *run[T]) storeWithRetry(ctx context.Context, project string, records []T) (Result, error) {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		result, err := r.kind.Store(ctx, project, records)
		if err == nil {
			return result, nil
		}
		if apierr.From(err).Code() != apierr.Unavailable || time.Since(begin)+pause > r.options.RetryTime {
			return Result{}, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Result{}, ctx.Err()
		}
	}
}
