package authn

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
)

// counter counts one look-up of a key by outcome: "hit", "miss" or "error".
type counter = func(ctx context.Context, outcome string)

const meterName = "github.com/lectern-dev/lectern/shared/auth"

// lookupCounter returns a function that returns the [counter] of a layer. The layers "redis" and "postgres" have records
// of keys and identities. The layer "issuer" has the signing keys of tokens. The counters feed the metric lectern.key.lookups.
func lookupCounter(provider metric.MeterProvider) (func(layer string) counter, error) {
	lookups, err := provider.Meter(meterName).Int64Counter("lectern.key.lookups",
		metric.WithDescription("Look-ups of API keys and tokens that the process has not cached or renews, by layer and outcome."), metric.WithUnit("{lookup}"))
	return func(layer string) counter {
		return func(ctx context.Context, outcome string) {
			lookups.Add(ctx, 1, metric.WithAttributes(attribute.String("layer", layer), attribute.String("outcome", outcome)))
		}
	}, err
}

// measure registers lectern.rate.limited, lectern.redis.up and lectern.issuer.up. The values are read at each collection of the metrics.
// Without Redis, lectern.redis.up has no value. Close unregisters the returned registration.
func (a *Authenticator) measure(provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter(meterName)
	limited, err1 := meter.Int64ObservableCounter("lectern.rate.limited",
		metric.WithDescription("Requests that were over their rate."), metric.WithUnit("{request}"))
	up, err2 := meter.Int64ObservableGauge("lectern.redis.up",
		metric.WithDescription("1 while Redis answers, 0 while it is not used because of a fault."))
	issuer, err3 := meter.Int64ObservableGauge("lectern.issuer.up",
		metric.WithDescription("1 while the signing keys of an issuer of tokens can be read, 0 since the last read failed."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(limited, a.Limiter.Refused())
		if a.Redis != nil {
			o.ObserveInt64(up, asNumber(a.Redis.Up()))
		}
		if a.tokens != nil {
			a.tokens.EachIssuer(func(url string, up bool) {
				o.ObserveInt64(issuer, asNumber(up), metric.WithAttributes(attribute.String("issuer", url)))
			})
		}
		return nil
	}, limited, up, issuer)
}

// asNumber returns 1 for true, and 0 for false.
func asNumber(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// counted is an [auth.Store] that passes look-ups to the embedded Store and counts each outcome. A key that the store
// does not have is a miss.
type counted struct {
	auth.Store
	count counter
}

func (c counted) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	r, err := c.Store.Lookup(ctx, projectID, h)
	c.note(ctx, err)
	return r, err
}

func (c counted) Grants(ctx context.Context, projectID string, hashes []auth.Hash) ([]auth.Record, error) {
	found, err := c.Store.Grants(ctx, projectID, hashes)
	if err == nil && len(found) == 0 {
		c.count(ctx, "miss")
	} else {
		c.note(ctx, err)
	}
	return found, err
}

func (c counted) EachProject(ctx context.Context, hashes []auth.Hash, do func(auth.Record) bool) error {
	found := false
	err := c.Store.EachProject(ctx, hashes, func(r auth.Record) bool { found = true; return do(r) })
	if err == nil && !found {
		c.count(ctx, "miss")
	} else {
		c.note(ctx, err)
	}
	return err
}

func (c counted) note(ctx context.Context, err error) {
	outcome := "hit"
	if _, refused := errors.AsType[apierr.Refusal](err); refused {
		outcome = "miss"
	} else if err != nil {
		outcome = "error"
	}
	c.count(ctx, outcome)
}
