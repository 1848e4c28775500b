package pgcitus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
)

// logLines returns the log lines in short: the level and message of each, with its cause or duration.
func logLines(t *testing.T, log *bytes.Buffer) []string {
	t.Helper()
	var lines []string
	for text := range strings.Lines(log.String()) {
		var line struct {
			Level, Msg, Pool, Node, Error string
			Group                         int
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		what, _, _ := strings.Cut(line.Msg, ";")
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s: %s, %d, %s %s", line.Level, what, line.Pool, line.Group, line.Node, line.Error)))
	}
	return lines
}

func loggedWorker(most int) (*worker, *bytes.Buffer) {
	var log bytes.Buffer
	w := newWorker(2, slog.New(slog.NewJSONHandler(&log, nil)).With(slog.String("pool", "entries")))
	w.configure(most, "worker-2:5432")
	return w, &log
}

// TestWorkerState checks that a worker is logged once when it is unreachable or hangs, and once when it serves again. A
// result that a newer answer contradicts is ignored.
func TestWorkerState(t *testing.T) {
	lost, silent := errors.New("no route"), errors.New("no sign of life")
	const (
		isDown   = "WARN: a Citus worker is out of reach: entries, 2, worker-2:5432 no route"
		hangs    = "WARN: a Citus worker does not answer: entries, 2, worker-2:5432 no sign of life"
		isServed = "INFO: a Citus worker serves again: entries, 2, worker-2:5432"
	)
	visit := func(t *testing.T, w *worker, s outcome) {
		t.Helper()
		_, v, err := w.enter(context.Background(), "pr_1", 0)
		if err != nil {
			t.Fatal(err)
		}
		v.leave(s)
	}
	suspected := func(t *testing.T, w *worker, want bool) {
		t.Helper()
		if project, got := w.suspect(time.Hour); got != want || got && project != "pr_1" {
			t.Errorf("suspected %v of %q, want %v", got, project, want)
		}
	}
	for _, tt := range []struct {
		name string
		in   func(t *testing.T, w *worker)
		is   state
		want []string
	}{
		{"it serves", func(t *testing.T, w *worker) {
			visit(t, w, outcomeSucceeded)
			visit(t, w, outcomeAnswered)
			visit(t, w, outcomeUnknown)
			suspected(t, w, false)
		}, serving, nil},
		{"a statement cannot reach it", func(t *testing.T, w *worker) {
			visit(t, w, outcomeUnreachable)
			suspected(t, w, true)
		}, serving, nil},
		{"it was out of reach for a moment", func(t *testing.T, w *worker) {
			visit(t, w, outcomeUnreachable)
			w.set(serving, time.Now(), nil)
			suspected(t, w, false)
		}, serving, nil},
		{"it is down", func(t *testing.T, w *worker) {
			visit(t, w, outcomeUnreachable)
			for range 3 {
				w.set(down, time.Now(), lost)
				visit(t, w, outcomeUnreachable)
			}
			suspected(t, w, false) // it was probed just now
		}, down, []string{isDown}},
		{"it is down, and a statement finds it back", func(t *testing.T, w *worker) {
			w.set(down, time.Now(), lost)
			visit(t, w, outcomeSucceeded)
			visit(t, w, outcomeSucceeded)
		}, serving, []string{isDown, isServed}},
		{"it is down, and is found back", func(t *testing.T, w *worker) {
			w.set(down, time.Now(), lost)
			w.set(serving, time.Now(), nil)
		}, serving, []string{isDown, isServed}},
		{"it is down since a visit began", func(t *testing.T, w *worker) {
			_, v, err := w.enter(context.Background(), "pr_1", 0)
			if err != nil {
				t.Fatal(err)
			}
			w.set(down, time.Now(), lost)
			v.leave(outcomeSucceeded)
		}, down, []string{isDown}},
		{"it served while it was found down", func(t *testing.T, w *worker) {
			began := time.Now()
			visit(t, w, outcomeSucceeded)
			w.set(down, began, lost)
		}, serving, nil},
		{"it answered while it was found to hang", func(t *testing.T, w *worker) {
			began := time.Now()
			visit(t, w, outcomeAnswered)
			w.set(hanging, began, silent)
		}, serving, nil},
		{"it hangs, and then is down, and back", func(t *testing.T, w *worker) {
			w.set(hanging, time.Now(), silent)
			w.set(hanging, time.Now(), silent)
			if _, _, err := w.enter(context.Background(), "pr_1", 0); !errors.Is(err, errHangs) {
				t.Errorf("let in where it hangs: %v", err)
			}
			w.set(down, time.Now(), lost)
			w.set(serving, time.Now(), nil)
		}, serving, []string{hangs, isDown, isServed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, log := loggedWorker(1)
			tt.in(t, w)
			if is := w.current(); is != tt.is {
				t.Errorf("is %s, want %s", is, tt.is)
			}
			if diff := cmp.Diff(tt.want, logLines(t, log)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWorkerHangs checks that statements in flight on a hanging worker are cancelled, and that waiting statements are
// refused.
func TestWorkerHangs(t *testing.T) {
	w, _ := loggedWorker(1)
	ctx, v, err := w.enter(context.Background(), "pr_1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error)
	go func() {
		_, _, err := w.enter(context.Background(), "pr_2", time.Minute)
		waits <- err
	}()
	w.set(hanging, time.Now(), errors.New("no sign of life"))
	if err := <-waits; !errors.Is(err, errHangs) {
		t.Errorf("the waiting statement: %v", err)
	}
	if ctx.Err() == nil {
		t.Error("the statement was not cancelled")
	}
	if err := v.meaning(ctx.Err()); !errors.Is(err, errHangs) {
		t.Errorf("the cancelled statement: %v", err)
	}
	v.leave(outcomeUnknown)
	w.set(serving, time.Now(), nil)
	if _, v, err := w.enter(context.Background(), "pr_1", 0); err != nil {
		t.Errorf("when it serves again: %v", err)
	} else {
		v.leave(outcomeSucceeded)
	}
}

func TestStateOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   error
		want state
	}{
		{"an answer", nil, serving},
		{"a fault of the question", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "42501"}, serving},
		{"no way to the worker", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "08006"}, down},
		{"the role's statement_timeout", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "57014"}, hanging},
		{"the coordinator shuts down", &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}, ""},
		{"the coordinator's own protocol", &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "08P01"}, ""},
		{"the connection to the coordinator is lost", io.ErrUnexpectedEOF, ""},
		{"nobody waits any more", context.Canceled, ""},
	} {
		if got := stateOf(tt.in); got != tt.want {
			t.Errorf("%s is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestWorkerWhoseStatementsWereCancelled checks that cancelled statements do not make a worker count as silent. A later
// caller that finds it full still waits for its turn.
func TestWorkerWhoseStatementsWereCancelled(t *testing.T) {
	w := newWorker(1, slog.New(slog.DiscardHandler))
	w.configure(1, "")
	ctx := context.Background()
	_, impatient, err := w.enter(ctx, "pr_1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	impatient.leave(outcomeUnknown)
	w.waiting = time.Now().Add(-time.Hour)
	_, first, err := w.enter(ctx, "pr_1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { first.leave(outcomeSucceeded) })
	_, second, err := w.enter(ctx, "pr_1", time.Minute)
	if err != nil {
		t.Fatalf("the second statement: %v", err)
	}
	second.leave(outcomeSucceeded)
}
