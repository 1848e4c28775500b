package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"

	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	experiments "github.com/lectern-dev/lectern/services/experiments/app"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/routes"
	shared "github.com/lectern-dev/lectern/shared/service"
)

// services are what runs behind the edges: one line each.
func services() []service {
	return []service{
		row(routes.Entries, func(c *entries.Config) *shared.Config { return &c.Config }, entries.Run, entries.Migrate),
		row(routes.Embeddables, func(c *embeddables.Config) *shared.Config { return &c.Config }, embeddables.Run, embeddables.Migrate),
		row(routes.Experiments, func(c *experiments.Config) *shared.Config { return &c.Config }, experiments.Run, experiments.Migrate),
		row(routes.Region, func(c *region.Config) *shared.Config { return &c.Config }, region.Run, region.Migrate),
	}
}

// service is one that can be run in this process.
type service struct {
	name    routes.Service
	migrate func(ctx context.Context, environ map[string]string, log io.Writer) error
	// run serves until ctx ends. ready is called when its addresses are open.
	run func(ctx context.Context, environ map[string]string, log io.Writer, ready func(address)) error
}

// address is where one service listens.
type address struct{ public, internal string }

// row makes a service of its package: its configuration, where in it the common part is, and what it
// does.
func row[C any](name routes.Service, common func(*C) *shared.Config, run, migrate func(context.Context, C) error) service {
	load := func(environ map[string]string, log io.Writer) (cfg C, err error) {
		err = config.Load(&cfg, environ)
		common(&cfg).LogOutput = log
		return cfg, err
	}
	return service{
		name: name,
		migrate: func(ctx context.Context, environ map[string]string, log io.Writer) error {
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
			common(&cfg).HTTP.Ready = func(public, internal net.Addr) { ready(address{public.String(), internal.String()}) }
			return run(ctx, cfg)
		},
	}
}

// startServices migrates and starts all, at once, and returns where each listens when all do.
func (r *run) startServices(ctx context.Context, all []service, dbs databases, environ map[string]string, logs logs) (map[routes.Service]address, error) {
	type event struct {
		name routes.Service
		address
		err error
	}
	// The services end when they are told to, which is after the edges, and not with ctx.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	events := make(chan event, 2*len(all))
	started := 0
	r.onStop(func(ctx context.Context) error {
		stop()
		var err error
		for range started {
			select {
			case e := <-events:
				if e.err != nil && err == nil {
					err = fmt.Errorf("stop %s: %w", e.name, e.err)
				}
			case <-ctx.Done():
				return fmt.Errorf("the services do not stop: %w", ctx.Err())
			}
		}
		return err
	})
	ready := make(chan event, len(all))
	for _, s := range all {
		out, err := logs(string(s.name))
		if err != nil {
			return nil, err
		}
		own := maps.Clone(environ)
		db := dbs.of[string(s.name)]
		own["DATABASE_URL"], own["INGEST_DATABASE_URL"], own["MIGRATE_DATABASE_URL"] = db.reader, db.ingest, db.owner
		started++
		go func() {
			err := s.migrate(running, own, out)
			if err == nil {
				err = s.run(running, own, out, func(a address) { ready <- event{name: s.name, address: a} })
			}
			if running.Err() == nil {
				// It ended by itself.
				if err == nil {
					err = errors.New("it ended")
				}
				err = fmt.Errorf("%s: %w", s.name, err)
				r.fail(err)
				err = nil // said already
			}
			events <- event{name: s.name, err: err}
		}()
	}
	addresses := map[routes.Service]address{}
	for range all {
		select {
		case e := <-ready:
			addresses[e.name] = e.address
		case err := <-r.failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return addresses, nil
}
