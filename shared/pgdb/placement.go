package pgdb

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5"
)

// placement says on which group of nodes a distributed database (Citus) keeps which projects. It is
// what the database's own tables say, and changes only by being learned anew.
type placement struct {
	table string  // one of the tables, to be asked for signs of life; quoted
	ends  []int32 // of the ranges of hashes, ascending
	at    []*cell // of each range
	cells []*cell // each once
}

// of gives the cell that keeps a project.
func (p *placement) of(project string) *cell {
	i, _ := slices.BinarySearch(p.ends, int32(hashText(project)))
	if i == len(p.at) {
		return nil
	}
	return p.at[i]
}

// isDistributed asks whether tables may be distributed here at all.
const isDistributed = `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')`

// hashProbes are hashed by the database and here, to see that both agree: lengths at which the
// algorithm does different things.
var hashProbes = []string{"", "pr_1", "twelve bytes", "a text that is longer than two of its blocks", "ä"}

// whereProjectsAre reads the ranges of one distributed table. All that a service has are distributed alike.
const whereProjectsAre = `
	SELECT t.logicalrelid::text, s.shardmaxvalue::int4, p.groupid, coalesce(n.nodename || ':' || n.nodeport, ''),
	       ARRAY(SELECT hashtext(u COLLATE "C") FROM unnest($1::text[]) u)
	FROM (SELECT logicalrelid FROM pg_dist_partition WHERE partmethod = 'h' ORDER BY logicalrelid::text LIMIT 1) t
	JOIN pg_dist_shard s USING (logicalrelid)
	JOIN pg_dist_placement p USING (shardid)
	LEFT JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
	ORDER BY 2`

// errOtherHash says that the database hashes as nothing here does: on another kind of machine.
var errOtherHash = errors.New("the database hashes text in another way")

// learn reads the placement; nil when nothing is distributed. Cells that before has are kept.
func (p *Pool) learn(ctx context.Context, before *placement) (*placement, error) {
	next := &placement{}
	cells, nodes := map[int32]*cell{}, map[int32]string{}
	if before != nil {
		for _, c := range before.cells {
			cells[c.id] = c
		}
	}
	err := p.query(ctx, func(rows pgx.Rows) error {
		var end, id int32
		var node string
		var hashes []int32
		for rows.Next() {
			if err := rows.Scan(&next.table, &end, &id, &node, &hashes); err != nil {
				return err
			}
			for i, probe := range hashProbes {
				if i >= len(hashes) || hashes[i] != int32(hashText(probe)) {
					return errOtherHash
				}
			}
			c := cells[id]
			if c == nil {
				c = newCell(id, p.options.Log.With(slog.String("pool", p.options.Name)))
				cells[id] = c
			}
			nodes[id] = node
			next.ends, next.at = append(next.ends, end), append(next.at, c)
			if !slices.Contains(next.cells, c) {
				next.cells = append(next.cells, c)
			}
		}
		return nil
	}, whereProjectsAre, []any{hashProbes})
	if err != nil || len(next.cells) == 0 {
		return nil, err
	}
	slices.SortFunc(next.cells, func(a, b *cell) int { return cmp.Compare(a.id, b.id) })
	most := share(int(p.options.MaxConns), len(next.cells))
	for _, c := range next.cells {
		c.allow(most, nodes[c.id])
	}
	return next, nil
}

// share is how many of a pool's connections one of n cells may take: twice what would be fair, as they
// are not all busy at once, and never more than half, so that one that hangs leaves as much as that. A
// single cell may take all: there is no other to be kept from harm.
func share(conns, n int) int {
	if n == 1 {
		return conns
	}
	return max(1, min(conns/2, (2*conns+n-1)/n))
}

// hashText hashes as PostgreSQL's hashtext does with a deterministic collation (hash_bytes of
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
		// Each step is that of the one before with the three in turn.
		a -= c
		a ^= bits.RotateLeft32(c, turn)
		c += b
		a, b, c = b, c, a
	}
	return a, b, c
}
