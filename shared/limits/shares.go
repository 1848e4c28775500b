// Package limits bounds what requests take from each other, by two ideas:
//
//   - Shares of a bounded thing. [Shares] and [Pool] refuse a request over its holder's share, and [Turns] lets it wait.
//   - A rate: [Limiter] allows so many requests of a key in a second, in Redis for all processes together or in this process.
//     [Refusals] are a rate of refused keys.
//
// docs/explanation/admission.md explains which resources have a bound, and what the server answers over a bound. All but
// the rates in Redis are those of one process.
package limits

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// Share is the most that a holder may have of a resource, in the resource's unit. A Share of the zero Holder, or with Most
// 0, bounds nothing.
type Share struct {
	Holder Holder
	Most   int64
}

// Shares counts what each holder has of a resource. Shares may be used from several goroutines. The zero Shares are valid.
type Shares struct {
	mu      sync.Mutex
	all     int64            // what Everything has
	taken   map[Holder]int64 // what other holders have; without zeros
	refused int64
}

// Over is the error of [Shares.Take] and [Pool.Take]: Holder would exceed its share.
type Over struct{ Holder Holder }

// Error returns the reason, for the log.
func (o Over) Error() string {
	if o.Holder == Everything {
		return "all of it is taken"
	}
	return "the holder has its share"
}

// Take takes n for the holders of all shares. The error is [Over] with the first holder that would exceed its share; then
// Take takes nothing. A holder that has nothing may exceed its share.
func (s *Shares) Take(n int64, shares ...Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, share := range shares {
		if has := s.of(share.Holder); has > 0 && share.Most > 0 && has+n > share.Most {
			s.refused++
			return Over{share.Holder}
		}
	}
	s.add(n, shares)
	return nil
}

// Give gives n back for the holders of all shares. Each holder must have taken at least n.
func (s *Shares) Give(n int64, shares ...Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(-n, shares)
}

// of returns what a holder has.
func (s *Shares) of(h Holder) int64 {
	switch h.kind {
	case 0:
		return 0
	case everything:
		return s.all
	}
	return s.taken[h]
}

func (s *Shares) add(n int64, shares []Share) {
	if s.taken == nil {
		s.taken = map[Holder]int64{}
	}
	for _, share := range shares {
		switch has := s.of(share.Holder) + n; {
		case share.Holder.kind == 0:
		case share.Holder.kind == everything:
			s.all = has
		case has == 0:
			delete(s.taken, share.Holder)
		default:
			s.taken[share.Holder] = has
		}
	}
}

// Pool is a limited amount of a resource that requests take and give back: requests in flight, waits or bytes. Each
// holder may have the same share of the pool, and all networks of an IPv6 /48 together twice a share.
type Pool struct {
	name        string
	size, share int64
	shares      Shares
}

// NewPool returns a Pool of the given size, in the unit of its resource. One holder may have up to share of the pool. A
// size of 0 sets no bound, and then share has no effect. The metrics of [Measure] show the name.
func NewPool(name string, size, share int64) *Pool {
	if size == 0 {
		share = 0
	}
	return &Pool{name: name, size: size, share: share}
}

// Eighth is the usual share of one holder: an eighth of a pool, and at least 1.
func Eighth(size int64) int64 { return max(1, size/8) }

// of returns the shares that a holder's amount counts against. The last is that of the whole pool.
func (p *Pool) of(h Holder) [3]Share {
	return [3]Share{{h, p.share}, {h.around(), 2 * p.share}, {Everything, p.size}}
}

// Take takes n of the pool for a holder. The error is [Over] with [Everything] if the pool would exceed its size, and with
// another Holder if that would exceed its share. A holder that has nothing may exceed its share, and any holder the size
// of a pool of which nothing is taken.
func (p *Pool) Take(holder Holder, n int64) error {
	shares := p.of(holder)
	return p.shares.Take(n, shares[:]...)
}

// Move passes n of the pool from one holder to another. The error is [Over] if the new holder would exceed its share; then
// both holders keep what they have. A new holder that has nothing may exceed its share.
func (p *Pool) Move(from, to Holder, n int64) error {
	if from == to {
		return nil
	}
	had, shares := p.of(from), p.of(to)
	err := p.shares.Take(n, shares[:2]...)
	if err == nil {
		p.shares.Give(n, had[:2]...)
	}
	return err
}

// Give gives n back to the pool. The holder must have taken at least n.
func (p *Pool) Give(holder Holder, n int64) {
	shares := p.of(holder)
	p.shares.Give(n, shares[:]...)
}

// Answer returns the answer to a request that a [Pool] has refused with err. Over a share, the answer is 429 with the message
// what. If the pool is full, the answer is 503, and only the log has the setting of the pool's size.
func Answer(err error, what, setting string) error {
	if errors.Is(err, Over{Everything}) {
		return apierr.NotAvailable(fmt.Errorf("%s: %w", setting, err))
	}
	return apierr.New(apierr.RateLimited, what).After(time.Second)
}

// Measure registers two metrics for each pool:
//
//	lectern.admission.used{pool}      the amount that is taken, in the pool's unit
//	lectern.admission.refused{pool}   requests that the pool refused
func Measure(provider metric.MeterProvider, pools ...*Pool) error {
	meter := provider.Meter("github.com/lectern-dev/lectern/shared/limits")
	used, err1 := meter.Int64ObservableGauge("lectern.admission.used",
		metric.WithDescription("What requests have taken of a pool: requests, waits or bytes."))
	refused, err2 := meter.Int64ObservableCounter("lectern.admission.refused",
		metric.WithDescription("Requests that a pool refused: 429 if it was for a holder's share, else 503."), metric.WithUnit("{request}"))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, p := range pools {
			p.shares.mu.Lock()
			is, not := p.shares.all, p.shares.refused
			p.shares.mu.Unlock()
			of := metric.WithAttributes(attribute.String("pool", p.name))
			o.ObserveInt64(used, is, of)
			o.ObserveInt64(refused, not, of)
		}
		return nil
	}, used, refused)
	return err
}
