package apierr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestBody(t *testing.T) {
	tests := []struct {
		name string
		in   *Error
		want string
	}{
		{"no context", NoRoute(), `{"error":{"code":"route_not_found","message":"There is no such path."}}`},
		{"a field that was not set is null", NotAuthorized(), `{"error":{"code":"unauthorized","message":"You are not authorized to access this project with the API key provided."},"projectId":null}`},
		{"in the contract's order", New(EmbeddableVersionDoesNotExist, "m").With("versionNumber", 3).With("embeddableId", "e").With("projectId", `p"`),
			`{"error":{"code":"embeddable_version_does_not_exist","message":"m"},"projectId":"p\"","embeddableId":"e","versionNumber":3}`},
		{"a field that is not the code's is dropped", NoEntry("en_1").With("projectId", "p"),
			`{"error":{"code":"entry_not_found","message":"The entry with the specified ID does not exist or you don't have permission to access it."},"entryId":"en_1"}`},
		{"the cause stays inside", NotAvailable(errors.New("dial 10.1.2.3")).With("projectId", "p"),
			`{"error":{"code":"unavailable","message":"The service cannot answer right now. Try again shortly."},"projectId":"p"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.in)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestFrom(t *testing.T) {
	plain := errors.New("pq: relation does not exist")
	if e := From(plain); e.Code() != Internal || e.Status() != 500 || !errors.Is(e, plain) || strings.Contains(e.Message(), "relation") {
		t.Errorf("a plain error became %v", e)
	}
	wrapped := fmt.Errorf("list entries: %w", NotAvailable(plain))
	if e := From(wrapped); e.Code() != Unavailable || e.RetryAfter() != time.Second || !errors.Is(e, plain) {
		t.Errorf("a wrapped one became %v", e)
	}
}

// TestLogShowsTheCause checks that the log has the cause of an error, and the body does not.
func TestLogShowsTheCause(t *testing.T) {
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Error("failed", slog.Any("error", NotAvailable(errors.New("dial 10.1.2.3"))))
	if !strings.Contains(b.String(), "dial 10.1.2.3") {
		t.Error(b.String())
	}
}

func TestCopiesDoNotShare(t *testing.T) {
	base := New(InvalidParameter, "m")
	a, b := base.With("parameter", "a"), base.With("parameter", "b")
	of := func(e *Error) any {
		value, _ := e.field("parameter")
		return value
	}
	if base.Has("parameter") || of(a) != "a" || of(b) != "b" || of(a.With("parameter", "c")) != "c" {
		t.Error("With changed another error")
	}
}

func TestBadParameterIsBounded(t *testing.T) {
	e := BadParameter("limit", strings.Repeat("é", 1000), "less")
	if len(e.Message()) > 300 || !strings.Contains(e.Message(), "…") {
		t.Errorf("%d bytes: %s", len(e.Message()), e.Message())
	}
}
