package pgcitus

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5"
)

// placement maps projects to workers, as Citus' own tables do. It is replaced as a whole and never changed.
type placement struct {
	table   string    // one of the distributed tables, for probes; quoted
	ends    []int32   // last hash of each range, ascending
	at      []*worker // worker of each range
	workers []*worker // each once
}

// workerOf returns the worker that has a project, or nil if it is not known.
func (p *placement) workerOf(project string) *worker {
	i, _ := slices.BinarySearch(p.ends, int32(hashText(project)))
	if i == len(p.at) {
		return nil
	}
	return p.at[i]
}

// hashProbes are hashed by the database and here, to check that both agree. The algorithm handles each of these
// lengths differently.
var hashProbes = []string{"", "pr_1", "twelve bytes", "a text that is longer than two of its blocks", "ä"}

// selectPlacement selects the ranges of one distributed table. All tables of a service are distributed alike.
const selectPlacement = `
	SELECT t.logicalrelid::text, s.shardmaxvalue::int4, p.groupid, coalesce(n.nodename || ':' || n.nodeport, ''),
	       ARRAY(SELECT hashtext(u COLLATE "C") FROM unnest($1::text[]) u)
	FROM (SELECT logicalrelid FROM pg_dist_partition WHERE partmethod = 'h' ORDER BY logicalrelid::text LIMIT 1) t
	JOIN pg_dist_shard s USING (logicalrelid)
	JOIN pg_dist_placement p USING (shardid)
	LEFT JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
	ORDER BY 2`

// errOtherHash means that the database has another hash function, for example on another kind of machine.
var errOtherHash = errors.New("the database hashes text in another way")

// loadPlacement reads the placement. It returns nil if no table is distributed. It reuses the workers of before.
func (g *gate) loadPlacement(ctx context.Context, before *placement) (*placement, error) {
	next := &placement{}
	workers, nodes := map[int32]*worker{}, map[int32]string{}
	if before != nil {
		for _, w := range before.workers {
			workers[w.group] = w
		}
	}
	err := g.pool.Query(ctx, func(rows pgx.Rows) error {
		var end, group int32
		var node string
		var hashes []int32
		for rows.Next() {
			if err := rows.Scan(&next.table, &end, &group, &node, &hashes); err != nil {
				return err
			}
			for i, probe := range hashProbes {
				if i >= len(hashes) || hashes[i] != int32(hashText(probe)) {
					return errOtherHash
				}
			}
			w := workers[group]
			if w == nil {
				w = newWorker(group, g.logger())
				workers[group] = w
			}
			nodes[group] = node
			next.ends, next.at = append(next.ends, end), append(next.at, w)
			if !slices.Contains(next.workers, w) {
				next.workers = append(next.workers, w)
			}
		}
		return nil
	}, selectPlacement, hashProbes)
	if err != nil || len(next.workers) == 0 {
		return nil, err
	}
	slices.SortFunc(next.workers, func(a, b *worker) int { return cmp.Compare(a.group, b.group) })
	most := share(int(g.options.MaxConns), len(next.workers))
	for _, w := range next.workers {
		w.configure(most, nodes[w.group])
	}
	return next, nil
}

// share returns how many of a pool's connections one of n workers may use. That is twice the fair share, as not all
// workers are busy at once. It is never more than half, so that a worker that hangs leaves the other half free. A
// single worker may use all: there is no other to protect.
func share(conns, n int) int {
	if n == 1 {
		return conns
	}
	return max(1, min(conns/2, (2*conns+n-1)/n))
}

// hashText returns the same hash as PostgreSQL's hashtext with a deterministic collation (hash_bytes of
// src/common/hashfn.c, after Jenkins' lookup3) on little-endian machines.
func hashText(s string) uint32 {
	a := uint32(0x9e3779b9) + uint32(len(s)) + 3923095
	b, c := a, a
	word := func(at int) (w uint32) {
		for i := range 4 {
			if at+i < len(s) {
				w |= uint32(s[at+i]) << (8 * i)
			}
		}
		return w
	}
	for len(s) >= 12 {
		a, b, c = mixHash(a+word(0), b+word(4), c+word(8))
		s = s[12:]
	}
	// The lowest byte of c is the length's.
	a, b, c = a+word(0), b+word(4), c+word(8)<<8
	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return c
}

// mixHash is mix of lookup3.
func mixHash(a, b, c uint32) (uint32, uint32, uint32) {
	for _, turn := range [...]int{4, 6, 8, 16, 19, 4} {
		// Each step is the one before with the three values rotated.
		a -= c
		a ^= bits.RotateLeft32(c, turn)
		c += b
		a, b, c = b, c, a
	}
	return a, b, c
}
