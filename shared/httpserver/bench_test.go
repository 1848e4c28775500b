package httpserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// discardWriter is a ResponseWriter that discards the response.
type discardWriter struct{ h http.Header }

func (w discardWriter) Header() http.Header         { return w.h }
func (w discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w discardWriter) WriteHeader(int)             {}

// BenchmarkChain measures the cost of the whole chain around a handler, including routing.
func BenchmarkChain(b *testing.B) {
	var c Config
	var tc telemetry.Config
	for _, dst := range []any{&c, &tc} {
		if err := config.Load(dst, map[string]string{}); err != nil {
			b.Fatal(err)
		}
	}
	tel, err := telemetry.Start(b.Context(), telemetry.Options{Service: "bench", Config: tc, LogOutput: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(b.Context()) }()
	body := []byte(`{"hello":"world"}`)
	router := httpapi.NewRouter()
	router.Get("/projects/{projectId}/things", func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(body)
		return err
	})
	m, err := newMetrics(tel.MeterProvider, "public")
	if err != nil {
		b.Fatal(err)
	}
	chain, err := newChain(Options{Service: "bench", Config: c, Telemetry: tel}, router, m, new(atomic.Bool), true)
	if err != nil {
		b.Fatal(err)
	}
	for _, handler := range []struct {
		name string
		http.Handler
	}{{"router alone", router}, {"chain", chain}} {
		b.Run(handler.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/projects/p1/things", nil)
			w := discardWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				handler.ServeHTTP(w, r)
			}
		})
	}
}
