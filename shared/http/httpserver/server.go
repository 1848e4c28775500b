// Package httpserver runs a service's two HTTP servers: a public and an internal listener, both on net/http as it is.
// The package owns the layers around every handler (recovery, request id, trace, access line, metrics, CORS, headers,
// compression, time-outs), health, and graceful shutdown. The package knows only the operational routes, such as
// /readyz.
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

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Options configures a [Server]: its routes, settings, telemetry and checks.
type Options struct {
	// Service is the service's name in spans. Required.
	Service string
	// Config holds the addresses and limits. Required; see [Config.Validate].
	Config Config
	// Telemetry receives the log, the spans and the metrics. Required.
	Telemetry *telemetry.Telemetry
	// Public serves the documented paths. Required.
	Public *httpapi.Router
	// Plain, if not nil, has headers of public answers in place of the server's own about caches and security. Plain
	// also turns compression and CORS off. A handler may replace or delete the headers in Plain.
	Plain http.Header
	// CORSOnErrors adds the headers of CORS to errors that [httpapi.WriteError] answers, if Plain and
	// CORS_ALLOWED_ORIGINS are set. CORS answers a preflight in place of its error, so that a page learns the error of
	// its request.
	CORSOnErrors bool
	// Headers are set in public answers before the handler runs, in place of the server's own of the same name. A
	// handler may replace or delete these headers. If Plain is set, Headers has no effect. Nil: none.
	Headers http.Header
	// Refuse answers with err a public request over MAX_IN_FLIGHT, or a wrong edge key from a network that has sent too
	// many. Nil: [httpapi.WriteError].
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// Internal serves the service's paths under /internal. New adds /healthz, /readyz, /metrics and, if Config has
	// Pprof, /debug/pprof/. Nil: only these operational paths.
	Internal *httpapi.Router
	// Inside says that clients within the platform reach the public address without a proxy. The network of each client
	// then has a share of MAX_IN_FLIGHT without TRUSTED_PROXIES, and links begin with PUBLIC_URL alone.
	Inside bool
	// OnlyHTTP1 refuses HTTP/2 on the public listener.
	OnlyHTTP1 bool
	// Checks are the checks that /readyz runs. Nil: /readyz answers 200 until the shutdown begins.
	Checks []Check
	// Stopping is called once the server accepts no more connections and waits for the requests in flight. Requests that
	// wait for news should end then. Nil: not called.
	Stopping func()
	// Context returns ctx with what the requests of the public paths need in their contexts. Nil: nothing.
	Context func(ctx context.Context) context.Context
}

// Server is the pair of a service's listeners, the public and the internal listener, with their shutdown.
type Server struct {
	config   Config
	inside   bool // Options.Inside
	log      *slog.Logger
	draining atomic.Bool
	public   *listener
	internal *listener
}

// listener is one of a Server's two addresses, with the http.Server that serves it.
type listener struct {
	name     string // public or internal
	variable string // the setting that holds address
	address  string
	server   *http.Server
	cut      context.CancelFunc // ends the contexts of all requests
	inFlight *atomic.Int64
	net.Listener
}

// readHeaderTimeout is how long a client may take to send the headers of a request. Headers fit into a few packets, so
// a client that takes longer is stalled or hostile.
const readHeaderTimeout = 5 * time.Second

// maxHeaderBytes bounds the request line and the headers together. The bound allows a long token and large cookies.
const maxHeaderBytes = 32 << 10

// New returns a Server that does not listen yet, and adds the operational paths to o.Internal. [Server.Run] opens the
// listeners. The error reports metrics or a compression that cannot be set up.
func New(o Options) (*Server, error) {
	if o.Internal == nil {
		o.Internal = httpapi.NewRouter()
	}
	s := &Server{config: o.Config, inside: o.Inside, log: o.Telemetry.Logger}
	checks := &health{checks: o.Checks, draining: &s.draining, log: s.log, now: time.Now}
	addOperational(o.Internal, checks, o.Telemetry.MetricsHandler(), o.Config.Pprof)
	var err error
	if s.public, err = s.newListener(o, "public", "LISTEN_PUBLIC", o.Config.ListenPublic, o.Public); err != nil {
		return nil, err
	}
	s.public.Listener = o.Config.Public
	if o.Stopping != nil {
		s.public.server.RegisterOnShutdown(o.Stopping)
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
	protocols.SetUnencryptedHTTP2(name != "public" || !o.OnlyHTTP1)
	ctx, cut := context.WithCancel(context.Background())
	base := ctx
	if name == "public" && o.Context != nil {
		base = o.Context(ctx)
	}
	l := &listener{
		name: name, variable: variable, address: address, cut: cut, inFlight: &m.inFlight,
		server: &http.Server{
			Handler:                      handler,
			Protocols:                    protocols,
			DisableGeneralOptionsHandler: true, // "OPTIONS *" gets our 404, not an empty 200
			ReadHeaderTimeout:            readHeaderTimeout,
			IdleTimeout:                  o.Config.IdleTimeout,
			MaxHeaderBytes:               maxHeaderBytes,
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams: 250,
				SendPingTimeout:      30 * time.Second, // finds clients that vanished without closing
				PingTimeout:          15 * time.Second,
				WriteByteTimeout:     o.Config.WriteTimeout,
			},
			// There is no ReadTimeout and no WriteTimeout: they would end long streams. The exchange limits each
			// read and each write of a body instead.
			ErrorLog:    log.New(serverLog{s.log}, "", 0),
			BaseContext: func(net.Listener) context.Context { return base },
		},
	}
	return l, nil
}

// Run listens and serves until ctx ends or a listener fails, then shuts down gracefully. After ctx has ended, /readyz
// answers 503, but the server serves for DRAIN_DELAY as before. Then the server accepts no more connections and waits
// up to DRAIN_TIMEOUT for the requests in flight. The error is nil after a clean shutdown.
func (s *Server) Run(ctx context.Context) error {
	for _, l := range []*listener{s.public, s.internal} {
		defer l.cut()
		if err := l.open(ctx); err != nil {
			return errors.Join(err, s.closeOpen())
		}
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
	s.config.warn(ctx, s.log, s.inside)
	if s.config.Ready != nil {
		s.config.Ready(s.public.Addr(), s.internal.Addr())
	}

	var failure error
	running := 2
	select {
	case <-ctx.Done():
	case failure = <-failed: // a listener ends by itself only with a fault
		running--
	}
	err := s.drain(context.WithoutCancel(ctx), failure == nil)
	for range running {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(failure, err)
}

// drain makes /readyz answer 503, waits for DRAIN_DELAY if delay is set, and then stops the public and the internal
// listener. The error is not nil if a request did not end within DRAIN_TIMEOUT.
func (s *Server) drain(ctx context.Context, delay bool) error {
	s.draining.Store(true)
	s.log.LogAttrs(ctx, slog.LevelInfo, "draining", slog.Duration("delay", s.config.DrainDelay),
		slog.Int64("running", s.public.inFlight.Load()))
	if delay && s.config.DrainDelay > 0 {
		time.Sleep(s.config.DrainDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.DrainTimeout)
	defer cancel()
	// Both listeners drain at the same time: a slow list must not take the time of an ingest.
	internal := make(chan error, 1)
	go func() { internal <- s.internal.stop(ctx) }()
	err := errors.Join(s.public.stop(ctx), <-internal)
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

// open listens on the listener's address, unless the configuration has an open listener. The error names the address
// and its setting.
func (l *listener) open(ctx context.Context) error {
	if l.Listener != nil {
		return nil
	}
	config := net.ListenConfig{Control: limitUnsent}
	config.SetMultipathTCP(false) // older kernels refuse TCP options for it
	opened, err := config.Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (%s): %w", l.address, l.variable, err)
	}
	l.Listener = opened
	return nil
}

// cutWithin is how long stop waits for handlers to return after it has canceled their requests.
const cutWithin = 2 * time.Second

// stop closes the listener and waits for the requests in flight until ctx ends. Then stop cancels the remaining
// requests and closes their connections. The error is not nil if a request did not end in time.
func (l *listener) stop(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	cut := l.inFlight.Load()
	// Cancel the handlers first: they abort their answers, so that none looks complete. Then close the connections.
	l.cut()
	for deadline := time.Now().Add(cutWithin); l.inFlight.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if closing := l.server.Close(); closing != nil {
		err = errors.Join(err, closing)
	}
	return fmt.Errorf("stop %s: %d requests did not finish in time: %w", l.name, cut, err)
}

// serverLog is the writer of http.Server's ErrorLog. serverLog logs a failure to accept a connection as a warning. All
// other messages get the level debug, because most are about a client's fault.
type serverLog struct{ log *slog.Logger }

// Write logs one message of net/http, with the level warn if a connection could not be accepted.
func (l serverLog) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "Accept error") {
		level = slog.LevelWarn
	}
	l.log.LogAttrs(context.Background(), level, "http server", slog.String("says", text))
	return len(line), nil
}
