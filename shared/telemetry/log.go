package telemetry

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/roots"
)

// LogDelay is how long a line of the log with a level below warn may wait before it is written.
const LogDelay = 100 * time.Millisecond

// newLogger returns a log that writes to out with the level and format of c.
func newLogger(out *lineBuffer, c Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	var h slog.Handler = slog.NewJSONHandler(out, options)
	if c.LogFormat == "text" {
		h = slog.NewTextHandler(out, options)
	}
	return slog.New(&handler{Handler: h, out: out})
}

// handler is a slog.Handler that adds the ids of the current trace and span to each line. After a line of warn or
// above, the handler writes out all waiting lines.
type handler struct {
	slog.Handler
	out *lineBuffer
}

// Handle writes one line to the lineBuffer, with the time in UTC. After a line of warn or above, Handle writes out all
// waiting lines.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	r.Time = r.Time.UTC()
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	if r.Level >= slog.LevelWarn {
		r = explained(r)
	}
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		if e := h.out.flush(); err == nil {
			err = e
		}
	}
	return err
}

// explained returns a line whose errors about unknown authorities say what to do.
func explained(r slog.Record) slog.Record {
	line := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.AnyValue(roots.Explain(err))
		}
		line.AddAttrs(a)
		return true
	})
	return line
}

// WithAttrs returns a handler that adds attrs to each line, in addition to the ids of the span.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{Handler: h.Handler.WithAttrs(attrs), out: h.out}
}

// WithGroup returns a handler that puts further attributes, and the ids of the span, into a group.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{Handler: h.Handler.WithGroup(name), out: h.out}
}

// lineBuffer collects lines and writes many lines with one system call, because each request logs an access line. No
// line waits longer than [LogDelay]. A line of warn or above is written at once, with the lines before. A slow writer
// slows the goroutines that log. Waiting lines are lost if the write fails, or if the process ends without close.
type lineBuffer struct {
	mu      sync.Mutex
	out     io.Writer
	lines   []byte
	pending bool // a flush is on its way
	closed  bool
}

// lineBufferBytes is the size, in bytes, at which the lineBuffer is written at once.
const lineBufferBytes = 64 << 10

func newLineBuffer(out io.Writer) *lineBuffer { return &lineBuffer{out: out} }

// Write adds one whole line to the buffer. Write writes the buffer out at once if the buffer is closed or full.
// Otherwise a flush follows within [LogDelay].
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line...)
	if b.closed || len(b.lines) >= lineBufferBytes {
		return len(line), b.writeOut()
	}
	if !b.pending {
		b.pending = true
		time.AfterFunc(LogDelay, func() { _ = b.flush() }) // the log cannot report its own failure
	}
	return len(line), nil
}

func (b *lineBuffer) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writeOut()
}

// close writes the waiting lines. After close, each line is written at once.
func (b *lineBuffer) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.writeOut()
}

func (b *lineBuffer) writeOut() error {
	b.pending = false
	if len(b.lines) == 0 {
		return nil
	}
	_, err := b.out.Write(b.lines)
	b.lines = b.lines[:0]
	return err
}
