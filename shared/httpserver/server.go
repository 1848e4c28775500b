// Package httpserver owns how a service stands on the network: a public and an internal listener, what
// every request passes on its way to a handler and back (recovery, request id, trace, access line,
// metrics, CORS, headers, compression, time-outs), health, and a stop that loses no request. It
// knows no route of its own but the operational ones.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/rawtcp"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Options is what a server is made of.
type Options struct {
	// Service is the service's name, as its spans know the server. Required.
	Service string
	// Config is where and how it listens. Required; see [Config.Validate].
	Config Config
	// Telemetry takes the log, the spans and the metrics. Required.
	Telemetry *telemetry.Telemetry
	// Public holds the documented paths. Required.
	Public *httpapi.Router
	// Plain leaves the public answers as their handlers make them: nothing is compressed, no CORS is added,
	// and of headers only X-Request-Id and these, which a handler may replace or take away. Nil: answers as
	// those of the documented paths are.
	Plain http.Header
	// Internal holds the service's paths under /internal. New adds /healthz, /readyz, /metrics and, where
	// Config says so, /debug/pprof/. Nil: those alone.
	Internal *httpapi.Router
	// Checks are what /readyz asks.
	Checks []Check
	// Exports limits the large lists of the public paths. Nil: no limit.
	Exports pagelist.Limiter
}

// Server is a service's two listeners.
type Server struct {
	config   Config
	log      *slog.Logger
	draining atomic.Bool
	public   *listener
	internal *listener
}

// listener is one address and what is served there.
type listener struct {
	name     string // public or internal
	variable string // which says where
	address  string
	server   *http.Server
	cut      context.CancelFunc // ends the contexts of all requests
	inFlight *atomic.Int64
	net.Listener
	direct *direct
}

// New returns a server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Internal == nil {
		o.Internal = httpapi.NewRouter()
	}
	s := &Server{config: o.Config, log: o.Telemetry.Logger}
	checks := &health{checks: o.Checks, draining: &s.draining, log: s.log, now: time.Now}
	addOperational(o.Internal, checks, o.Telemetry.MetricsHandler(), o.Config.Pprof)
	var err error
	if s.public, err = s.newListener(o, "public", "LISTEN_PUBLIC", o.Config.ListenPublic, o.Public); err != nil {
		return nil, err
	}
	if s.internal, err = s.newListener(o, "internal", "LISTEN_INTERNAL", o.Config.ListenInternal, o.Internal); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) newListener(o Options, name, variable, address string, router *httpapi.Router) (*listener, error) {
	m, err := newMetrics(o.Telemetry.MeterProvider, name)
	if err != nil {
		return nil, err
	}
	handler, err := newChain(o, router, m, &s.draining, name == "public")
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	ctx, cut := context.WithCancel(context.Background())
	base := ctx
	if name == "public" && o.Exports != nil {
		base = pagelist.WithLimiter(ctx, o.Exports)
	}
	l := &listener{
		name: name, variable: variable, address: address, cut: cut, inFlight: &m.inFlight,
		server: &http.Server{
			Handler:                      handler,
			Protocols:                    protocols,
			DisableGeneralOptionsHandler: true, // "OPTIONS *" gets our 404, not an empty 200
			ReadHeaderTimeout:            o.Config.ReadHeaderTimeout,
			IdleTimeout:                  o.Config.IdleTimeout,
			MaxHeaderBytes:               o.Config.MaxHeaderBytes,
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams: 250,
				SendPingTimeout:      30 * time.Second, // finds peers that are gone without a word
				PingTimeout:          15 * time.Second,
				WriteByteTimeout:     o.Config.WriteTimeout,
			},
			// Reads and writes of bodies have their limits per chunk, in exchange: one for the whole would
			// end long streams.
			ErrorLog:    log.New(serverLog{s.log}, "", 0),
			BaseContext: func(net.Listener) context.Context { return base },
			ConnContext: withConn,
		},
	}
	l.direct = newDirect(l.server, o.Telemetry.Logger)
	return l, nil
}

// Run listens and serves until ctx ends, then stops as gracefully as Config allows: not ready, a delay in
// which it serves as before and asks clients to come back on other connections, no new connections,
// running requests to their end. The internal listener stops last. The error is nil after that, and
// says what went wrong otherwise.
func (s *Server) Run(ctx context.Context) error {
	for _, l := range []*listener{s.public, s.internal} {
		defer l.cut()
		if err := l.open(ctx); err != nil {
			return errors.Join(err, s.closeOpen())
		}
		defer l.direct.departures.stop()
	}
	failed := make(chan error, 2)
	for _, l := range []*listener{s.public, s.internal} {
		go func() {
			if err := l.server.Serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", l.name, err)
				return
			}
			failed <- nil
		}()
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "listening",
		slog.String("public", s.public.Addr().String()), slog.String("internal", s.internal.Addr().String()))
	if s.config.Ready != nil {
		s.config.Ready(s.public.Addr(), s.internal.Addr())
	}

	var failure error
	running := 2
	select {
	case <-ctx.Done():
	case failure = <-failed: // a listener does not end by itself but by a fault
		running--
	}
	err := s.drain(context.WithoutCancel(ctx), failure == nil)
	for range running {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(failure, err)
}

// drain stops both listeners. The delay is left out when there is nobody left to be told.
func (s *Server) drain(ctx context.Context, delay bool) error {
	s.draining.Store(true)
	s.log.LogAttrs(ctx, slog.LevelInfo, "draining", slog.Duration("delay", s.config.DrainDelay),
		slog.Int64("running", s.public.inFlight.Load()))
	if delay && s.config.DrainDelay > 0 {
		time.Sleep(s.config.DrainDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.DrainTimeout)
	defer cancel()
	err := s.public.stop(ctx)
	err = errors.Join(err, s.internal.stop(ctx))
	s.log.LogAttrs(ctx, slog.LevelInfo, "stopped", slog.Bool("clean", err == nil))
	return err
}

func (s *Server) closeOpen() error {
	var errs []error
	for _, l := range []*listener{s.public, s.internal} {
		if l.Listener != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// open starts listening.
func (l *listener) open(ctx context.Context) error {
	opened, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("can not listen on %s (%s): %w", l.address, l.variable, err)
	}
	if l.direct.departures, err = watchDepartures(); err != nil {
		return errors.Join(fmt.Errorf("can not watch the connections to %s (%s): %w", l.address, l.variable, err), opened.Close())
	}
	l.Listener = accepting{opened, l.direct}
	return nil
}

// accepting prepares connections for slow readers, and for writers who want to be misunderstood.
type accepting struct {
	net.Listener
	direct *direct
}

// Accept waits for a connection.
func (a accepting) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	keepUnsent(conn, morsel/2)
	tcp := rawtcp.New(conn.(*net.TCPConn)) // open listens on no other network
	return newConn(tcp, a.direct.departures, a.direct), nil
}

// cutWithin is how long requests that were cut may take to notice.
const cutWithin = 2 * time.Second

// stop lets running requests finish until ctx ends; then it cuts them.
func (l *listener) stop(ctx context.Context) error {
	l.direct.stop()
	err := l.server.Shutdown(ctx)
	if err == nil {
		err = l.direct.wait(ctx)
	}
	if err == nil {
		return nil
	}
	cut := l.inFlight.Load()
	// First the handlers, which end their answers so that none looks whole, and then the connections.
	l.cut()
	for deadline := time.Now().Add(cutWithin); l.inFlight.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if closing := l.server.Close(); closing != nil {
		err = errors.Join(err, closing)
	}
	l.direct.cut()
	return fmt.Errorf("stop %s: %d requests did not finish in time: %w", l.name, cut, err)
}

// serverLog takes net/http's own complaints. Nearly all are about what a client did.
type serverLog struct{ log *slog.Logger }

// Write logs one complaint.
func (l serverLog) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "Accept error") {
		level = slog.LevelWarn
	}
	l.log.LogAttrs(context.Background(), level, "http server", slog.String("says", text))
	return len(line), nil
}
