package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// TestErrorOfACancelledRequest checks that a client that disconnected gets no answer. A request that was only cancelled
// because its body was not read to the end gets its error.
func TestErrorOfACancelledRequest(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want int // 0: the connection ends
	}{
		{"the client left", fmt.Errorf("read: %w", context.Canceled), 0},
		{"the database was cancelled, as a part of it hangs", apierr.NotAvailable(fmt.Errorf("store: %w", context.Canceled)), http.StatusServiceUnavailable},
		{"wrapped", fmt.Errorf("batch 1: %w", apierr.NotAvailable(context.Canceled)), http.StatusServiceUnavailable},
		{"something else", errors.New("broken"), http.StatusInternalServerError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(httpapi.WithInfo(t.Context(), &httpapi.Info{Logger: slog.New(slog.DiscardHandler)}))
			cancel()
			w := httptest.NewRecorder()
			got := 0
			func() {
				defer func() {
					if fault := recover(); fault != nil && fault != any(http.ErrAbortHandler) {
						panic(fault)
					}
				}()
				httpapi.WriteError(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil), tt.err)
				got = w.Code
			}()
			if got != tt.want {
				t.Errorf("answered %d, want %d", got, tt.want)
			}
		})
	}
}
