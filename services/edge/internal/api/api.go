// Package api owns the edge's routes, and passes each request to its service and the answer back. The edge buffers no
// body and changes no path of a request that it passes on. The edge itself answers the removal of a project, requests
// that it refuses, and requests whose service gives no answer.
package api

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/relay"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Options holds the routes, the addresses and the limits of an Edge.
type Options struct {
	// Routes are the known paths.
	Routes routes.Table
	// Exclude has the operations of Routes that get no route.
	Exclude []string
	// Addresses holds the address of each service, host:port. The paths of a service without an address are unknown.
	Addresses map[routes.Service]string
	// Key is sent to the services, which then believe the forwarding headers.
	Key config.Secret
	// AnswerTimeout bounds the time from the end of a request to the headers of its answer, except for the proxy. 0: no
	// bound.
	AnswerTimeout time.Duration
	// Waits bounds the requests that wait for changes. Required.
	Waits *limits.Pool
	// Stopping ends when requests that wait for changes should end. Required.
	Stopping context.Context
	// Telemetry takes the log, the metrics and the traces. Required.
	Telemetry *telemetry.Telemetry
}

// Edge sends each request to the service that has its path, and keeps the connections to the services.
type Edge struct {
	o           Options
	unreachable metric.Int64Counter
	buffers     relay.Buffers
	services    map[routes.Service]*service // those with an address
	// The proxy's targets may take longer than any service.
	toServices, toProxy *http.Transport
}

// New returns an Edge with the services in o.Addresses. The error means that a metric could not be created.
func New(o Options) (*Edge, error) {
	e := &Edge{o: o, toServices: newTransport(o.AnswerTimeout), toProxy: newTransport(0)}
	var err error
	e.unreachable, err = o.Telemetry.MeterProvider.Meter("github.com/lectern-dev/lectern/services/edge").Int64Counter("lectern.edge.unreachable",
		metric.WithDescription("Requests whose service could not be reached, or ended the connection before it answered."))
	if err != nil {
		return nil, fmt.Errorf("edge: metrics: %w", err)
	}
	e.services = make(map[routes.Service]*service, len(o.Addresses))
	for name, address := range o.Addresses {
		e.services[name] = e.newService(name, address)
	}
	return e, nil
}

const (
	// dialTimeout bounds the time to connect to a service.
	dialTimeout = 3 * time.Second
	// idleTimeout is how long the edge keeps a connection to a service without a request. The service's IDLE_TIMEOUT
	// must be longer: otherwise the service may close the connection just when the edge sends a request.
	idleTimeout = 60 * time.Second
	// refreshEvery is how often idle connections are closed. A Kubernetes Service chooses a replica for each
	// connection, so a new replica gets its share of the requests only over new connections.
	refreshEvery = 30 * time.Second
)

// dials is how often the edge tries to connect for one request. A Kubernetes Service chooses a replica for each connection,
// and knows only after a second or two that a replica was killed.
const dials = 3

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// redial returns a dialer that dials up to dials times by dial, as long as connections are refused. No byte of a request was
// sent then.
func redial(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		for range dials {
			if conn, err = dial(ctx, network, address); !errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
		}
		return conn, err
	}
}

func newTransport(answerTimeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                 nil, // the services are near, whatever the environment says
		DialContext:           redial((&net.Dialer{Timeout: dialTimeout}).DialContext),
		DisableCompression:    true,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       idleTimeout,
		ResponseHeaderTimeout: answerTimeout,
		ExpectContinueTimeout: time.Second, // until then the service decides whether it wants the body
	}
}

// Refresh closes all idle connections every refreshEvery until ctx ends, and once more at the end. New connections give
// new replicas of a service their share of the requests.
func (e *Edge) Refresh(ctx context.Context) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		e.toServices.CloseIdleConnections()
		e.toProxy.CloseIdleConnections()
		if ctx.Err() != nil {
			return
		}
	}
}

// Routes returns a router of all paths whose service has an address, without the excluded operations. The service
// answers every method of a path. The edge itself answers the removal of a project.
func (e *Edge) Routes() *httpapi.Router {
	rt := httpapi.NewRouter()
	for _, r := range e.o.Routes {
		s := e.services[r.Service]
		switch {
		case slices.Contains(e.o.Exclude, r.Operation):
		case r.Service == routes.All:
			rt.Handle(r.Template, map[string]http.Handler{http.MethodDelete: httpapi.HandlerFunc(e.removeProject)})
		case s == nil:
		case r.Template == feed:
			rt.Any(r.Template, e.waiting(s))
		default:
			rt.Any(r.Template, s)
		}
	}
	return rt
}

// feed is the path whose requests may wait for changes.
const feed = "/projects/{projectId}/entries-changes"

// waiting returns a handler that passes requests to next. While a request waits for changes, the edge does not count
// the request as in-flight. Such a request takes a place in Options.Waits for the network of its client, or is refused
// if there is no place. The service counts the requests of each project, because only the service knows whether a key
// belongs to the project.
func (e *Edge) waiting(next *service) http.Handler {
	return httpapi.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		wait := r.URL.Query().Get("wait")
		if wait == "" || wait == "0" || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return nil
		}
		info := httpapi.InfoFrom(r.Context())
		client := limits.Client(info.ClientAddress, info.ClientKnown)
		if err := e.o.Waits.Take(client, 1); err != nil {
			return limits.Answer(err, "Too many requests of this client wait for changes. Try again when some have ended.", "MAX_WAITING")
		}
		defer e.o.Waits.Give(client, 1)
		info.Leave()
		next.wait(w, r)
		return nil
	})
}

func (e *Edge) newService(name routes.Service, address string) *service {
	s := &service{
		edge: e, name: name, address: address, key: []string{e.o.Key.Reveal()},
		count: metric.WithAttributeSet(attribute.NewSet(attribute.String("service", string(name)))),
	}
	transport := e.toServices
	if name == routes.Proxy {
		transport = e.toProxy
	}
	s.proxy = &httputil.ReverseProxy{
		Rewrite:        s.rewrite,
		Transport:      transport,
		BufferPool:     &e.buffers,
		ModifyResponse: s.answered,
		ErrorHandler:   s.failed,
		ErrorLog:       log.New(complaints{e.o.Telemetry.Logger}, "", 0),
	}
	return s
}

// complaints is an io.Writer for ReverseProxy's messages about broken streams, which a client or a shutdown ended.
type complaints struct{ log *slog.Logger }

// Write logs one message of ReverseProxy for debugging.
func (c complaints) Write(line []byte) (int, error) {
	c.log.LogAttrs(context.Background(), slog.LevelDebug, "proxy", slog.String("says", strings.TrimSpace(string(line))))
	return len(line), nil
}
