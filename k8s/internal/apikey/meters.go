package apikey

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meters holds the controller's own metrics:
//
//	lectern.apikey.minted{cause}                    keys minted, by cause
//	lectern.apikey.revoked{cause}                   keys revoked, by cause
//	lectern.apikey.revocations.postponed            keys whose revocation the sweep postponed
type meters struct {
	mintedTotal, revokedTotal, postponedTotal metric.Int64Counter
}

func newMeters(provider metric.MeterProvider) (*meters, error) {
	meter := provider.Meter("github.com/lectern-dev/lectern/k8s/internal/apikey")
	m := &meters{}
	for _, c := range []struct {
		into              *metric.Int64Counter
		name, description string
	}{
		{&m.mintedTotal, "lectern.apikey.minted", "Keys minted for APIKeys, by why."},
		{&m.revokedTotal, "lectern.apikey.revoked", "Keys of APIKeys revoked, by why."},
		{&m.postponedTotal, "lectern.apikey.revocations.postponed", "Keys that stay valid for an hour, because the objects of all keys are gone and nobody saw their deletion."},
	} {
		counter, err := meter.Int64Counter(c.name, metric.WithDescription(c.description))
		if err != nil {
			return nil, err
		}
		*c.into = counter
	}
	// Export 0 from the start, so that alerts see the first increase.
	m.postponedTotal.Add(context.Background(), 0)
	return m, nil
}

func (m *meters) minted(ctx context.Context, why cause) {
	m.mintedTotal.Add(ctx, 1, metric.WithAttributes(attribute.String("cause", string(why))))
}

func (m *meters) revoked(ctx context.Context, why cause) {
	m.revokedTotal.Add(ctx, 1, metric.WithAttributes(attribute.String("cause", string(why))))
}

func (m *meters) postpone(ctx context.Context, keys int) { m.postponedTotal.Add(ctx, int64(keys)) }
