package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"time"

	edge "github.com/lectern-dev/lectern/services/edge/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/routes"
)

// startEdges starts two edges: one on public for the public paths of the services, and one on internal for their
// internal paths.
func (r *run) startEdges(ctx context.Context, public, internal net.Listener, addresses map[routes.Service]address, environ map[string]string, logs logs) error {
	out, err := logs("edge")
	if err != nil {
		return err
	}
	var outside, inside []string
	for name, a := range addresses {
		outside = append(outside, string(name)+"="+a.public)
		inside = append(inside, string(name)+"="+a.internal)
	}
	own := maps.Clone(environ)
	own["DRAIN_TIMEOUT"] = finishWithin.String()
	own["EDGE_SERVICES"] = strings.Join(inside, ",")
	own["EDGE_PATHS"] = "internal"
	own["EDGE_ANSWER_TIMEOUT"] = "10m" // a removal takes long
	if err := r.startEdge(ctx, "internal edge", internal, own, out); err != nil {
		return err
	}
	own["EDGE_SERVICES"] = strings.Join(outside, ",")
	delete(own, "EDGE_PATHS")
	delete(own, "EDGE_ANSWER_TIMEOUT")
	return r.startEdge(ctx, "edge", public, own, out)
}

// startEdge starts an edge with the settings in environ on l, and returns after the edge accepts requests. name
// identifies the edge in errors.
func (r *run) startEdge(ctx context.Context, name string, l net.Listener, environ map[string]string, log io.Writer) error {
	var cfg edge.Config
	if err := config.Load(&cfg, environ); err != nil {
		return err
	}
	cfg.LogOutput = log
	ready := make(chan struct{})
	cfg.HTTP.Public, cfg.HTTP.Ready = l, func(net.Addr, net.Addr) { close(ready) }
	r.parts.Go(func(running context.Context) {
		// Requests that do not end in time are cut off. This is not a fault of a stopping run.
		if err := edge.Run(running, cfg); running.Err() == nil {
			r.fail(fmt.Errorf("%s: %w", name, cmp.Or(err, errEnded)))
		}
	})
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finishWithin is how long in-flight requests to an edge may take after the edge begins to stop.
const finishWithin = 3 * time.Second

// errEnded is the error for a part that ends by itself without an error.
var errEnded = errors.New("it ended")
