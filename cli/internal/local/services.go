package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"

	"golang.org/x/sync/errgroup"

	proxy "github.com/lectern-dev/lectern/proxy/app"
	console "github.com/lectern-dev/lectern/services/console/app"
	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	experiments "github.com/lectern-dev/lectern/services/experiments/app"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/routes"
	shared "github.com/lectern-dev/lectern/shared/service"
)

// services returns the services of the platform to which the edges route. A new service needs one more row.
func services() []service {
	return []service{
		row(routes.Entries, func(c *entries.Config) common { return ofData(&c.Config) }, entries.Run, entries.Migrate),
		row(routes.Embeddables, func(c *embeddables.Config) common { return ofData(&c.Config) }, embeddables.Run, embeddables.Migrate),
		row(routes.Experiments, func(c *experiments.Config) common { return ofData(&c.Config) }, experiments.Run, experiments.Migrate),
		row(routes.Region, func(c *region.Config) common { return ofData(&c.Config) }, region.Run, region.Migrate),
		row(routes.Proxy, func(c *proxy.Config) common { return common{&c.LogOutput, &c.HTTP} }, proxy.Run, proxy.Migrate),
		row(routes.Console, func(c *console.Config) common { return common{&c.LogOutput, &c.HTTP} }, console.Run, nil),
	}
}

// service is a service of the platform that can run in this process.
type service struct {
	name    routes.Service
	migrate func(ctx context.Context, environ map[string]string, log io.Writer) error
	// run serves until ctx ends. run calls ready after the addresses of the service are open.
	run func(ctx context.Context, environ map[string]string, log io.Writer, ready func(address)) error
}

// address has the public and the internal address of one service, as host:port.
type address struct{ public, internal string }

// common points to the fields of a service's configuration that a run sets: the log, and the HTTP server.
type common struct {
	log  *io.Writer
	http *httpserver.Config
}

// ofData returns the fields that a run sets, in the configuration of a data service.
func ofData(c *shared.Config) common { return common{&c.LogOutput, &c.HTTP} }

// row returns a service from the functions of its package. parts returns the fields that a run sets in the
// configuration C. migrate is nil if there is nothing to migrate.
func row[C any](name routes.Service, parts func(*C) common, run, migrate func(context.Context, C) error) service {
	load := func(environ map[string]string, log io.Writer) (cfg C, err error) {
		err = config.Load(&cfg, environ)
		*parts(&cfg).log = log
		return cfg, err
	}
	return service{
		name: name,
		migrate: func(ctx context.Context, environ map[string]string, log io.Writer) error {
			if migrate == nil {
				return nil
			}
			cfg, err := load(environ, log)
			if err != nil {
				return err
			}
			return migrate(ctx, cfg)
		},
		run: func(ctx context.Context, environ map[string]string, log io.Writer, ready func(address)) error {
			cfg, err := load(environ, log)
			if err != nil {
				return err
			}
			parts(&cfg).http.Ready = func(public, internal net.Addr) { ready(address{public.String(), internal.String()}) }
			return run(ctx, cfg)
		},
	}
}

// startServices migrates and starts all services concurrently. startServices returns the addresses of the services
// after all services listen.
func (r *run) startServices(ctx context.Context, all []service, stores stores, environ map[string]string, logs logs) (map[routes.Service]address, error) {
	type started struct {
		name routes.Service
		address
	}
	ready := make(chan started, len(all))
	// The services are stopped after the edges, and not by ctx.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group errgroup.Group
	r.parts.Add(func(ctx context.Context) error {
		stop()
		stopped := make(chan error, 1)
		go func() { stopped <- group.Wait() }()
		select {
		case err := <-stopped:
			return err
		case <-ctx.Done():
			return fmt.Errorf("the services do not stop: %w", ctx.Err())
		}
	})
	for _, s := range all {
		out, err := logs(string(s.name))
		if err != nil {
			return nil, err
		}
		own := maps.Clone(environ)
		maps.Copy(own, stores.urls[string(s.name)])
		group.Go(func() error {
			err := s.migrate(running, own, out)
			switch {
			case err != nil && running.Err() != nil:
				return nil // the stop ended its migration, whatever that says
			case err == nil:
				err = s.run(running, own, out, func(a address) { ready <- started{s.name, a} })
			}
			switch {
			case running.Err() == nil: // the service failed
				r.fail(fmt.Errorf("%s: %w", s.name, cmp.Or(err, errEnded)))
			case err != nil && !errors.Is(err, context.Canceled):
				return fmt.Errorf("stop %s: %w", s.name, err)
			}
			return nil
		})
	}
	addresses := map[routes.Service]address{}
	for range all {
		select {
		case s := <-ready:
			addresses[s.name] = s.address
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return addresses, nil
}
