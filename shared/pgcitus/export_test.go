package pgcitus

import "github.com/lectern-dev/lectern/shared/pgdb"

// HashText exports hashText.
func HashText(s string) uint32 { return hashText(s) }

// Share exports share.
func Share(conns, n int) int { return share(conns, n) }

// Workers returns the number of workers that a pool's gate knows.
func Workers(p *pgdb.Pool) int {
	g, ok := p.Gate().(*gate)
	if !ok || g.placement.Load() == nil {
		return 0
	}
	return len(g.placement.Load().workers)
}
