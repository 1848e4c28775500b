package apierr

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestLogShowsTheCause checks that the log has the cause of an error, and the body does not.
func TestLogShowsTheCause(t *testing.T) {
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Error("failed", slog.Any("error", NotAvailable(errors.New("dial 10.1.2.3"))))
	if !strings.Contains(b.String(), "dial 10.1.2.3") {
		t.Error(b.String())
	}
}

func TestBadParameterIsBounded(t *testing.T) {
	e := BadParameter("limit", strings.Repeat("é", 1000), "less")
	if len(e.Message()) > 300 || !strings.Contains(e.Message(), "…") {
		t.Errorf("%d bytes: %s", len(e.Message()), e.Message())
	}
}
