// Package limits bounds how much requests may take of the resources that they share, such as requests in flight and
// memory. docs/explanation/admission.md explains which resources have a bound, and what the server answers over a
// bound.
//
// Each process counts on its own: every bound holds for one process.
package limits

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ErrFull and ErrShare are the errors of [Pool.Take]; [Pool.Move] returns only ErrShare. ErrFull means that the amount
// does not fit into the pool, and ErrShare that it does not fit into the holder's share.
var (
	ErrFull  = errors.New("all of it is taken")
	ErrShare = errors.New("the holder has its share")
)

// Holder identifies a taker of a [Pool]: a project, or the network of a client whose project is not known. The zero
// Holder is a client whose network is not known. No share bounds the zero Holder.
type Holder struct {
	name   string
	around string // of an IPv6 /64: its /48, which has twice a share
}

// Project returns the project with the id as a Holder.
func Project(id string) Holder { return Holder{name: "project " + id} }

// Network returns the network of a client's IP address as a Holder: an IPv4 address, or an IPv6 /64. All networks of an
// IPv6 /48 together have twice a share.
func Network(address string) Holder {
	h := Holder{name: "network " + NetworkOf(address)}
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() && !ip.Is4In6() {
		if around, err := ip.WithZone("").Prefix(48); err == nil {
			h.around = "network " + around.String()
		}
	}
	return h
}

// Client returns the network of a client as a Holder. If known is false, the address may be that of a proxy for all
// clients, and Client returns the zero Holder, which has no share.
func Client(address string, known bool) Holder {
	if !known {
		return Holder{}
	}
	return Network(address)
}

// Pool is a limited amount of a resource that requests take and give back: requests in flight, waits or bytes. Each
// holder may have a share of the pool. A Pool may be used from several goroutines.
type Pool struct {
	name        string
	size, share int64

	mu      sync.Mutex
	used    int64
	by      map[string]int64 // what each holder, and each network around holders, has; without zeros
	refused int64
}

// NewPool returns a Pool of the given size, in the unit of its resource. One holder may have up to share of the pool. A
// size of 0 sets no bound, and then share has no effect. The metrics of [Measure] show the name.
func NewPool(name string, size, share int64) *Pool {
	return &Pool{name: name, size: size, share: share, by: map[string]int64{}}
}

// Eighth is the usual share of one holder: an eighth of a pool, and at least 1.
func Eighth(size int64) int64 { return max(1, size/8) }

// Take takes n of the pool for a holder. The error is ErrShare if the holder would exceed its share, and ErrFull if the
// pool would exceed its size. A holder that has nothing may exceed its share. A holder may exceed the size of a pool of
// which nothing is taken.
func (p *Pool) Take(holder Holder, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.admits(holder, n); err != nil {
		p.refused++
		return err
	}
	if p.size > 0 && p.used > 0 && p.used+n > p.size {
		p.refused++
		return ErrFull
	}
	p.add(holder, n)
	return nil
}

// Move passes n of the pool from one holder to another. The error is ErrShare if the new holder would exceed its share;
// then both holders keep what they have. A new holder that has nothing may exceed its share.
func (p *Pool) Move(from, to Holder, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from == to {
		return nil
	}
	if err := p.admits(to, n); err != nil {
		p.refused++
		return err
	}
	p.add(from, -n)
	p.add(to, n)
	return nil
}

// Give gives n back to the pool. The holder must have taken at least n.
func (p *Pool) Give(holder Holder, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(holder, -n)
}

func (p *Pool) admits(holder Holder, n int64) error {
	if p.exceeds(holder.name, n, p.share) || p.exceeds(holder.around, n, 2*p.share) {
		return ErrShare
	}
	return nil
}

func (p *Pool) exceeds(name string, n, share int64) bool {
	has := p.by[name]
	return name != "" && p.size > 0 && has > 0 && has+n > share
}

func (p *Pool) add(holder Holder, n int64) {
	p.used += n
	for _, name := range []string{holder.name, holder.around} {
		if name == "" {
			continue
		}
		if p.by[name] += n; p.by[name] == 0 {
			delete(p.by, name)
		}
	}
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
			p.mu.Lock()
			is, not := p.used, p.refused
			p.mu.Unlock()
			of := metric.WithAttributes(attribute.String("pool", p.name))
			o.ObserveInt64(used, is, of)
			o.ObserveInt64(refused, not, of)
		}
		return nil
	}, used, refused)
	return err
}
