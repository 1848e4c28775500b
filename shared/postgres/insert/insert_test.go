package insert_test

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
)

func TestRows(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		n        int
		want     string
	}{
		{"one", `INSERT INTO a (p, b) VALUES ($1, $2) RETURNING 1`, 1, `INSERT INTO a (p, b) VALUES ($1, $2) RETURNING 1`},
		{"three", `INSERT INTO a (p, b, c) VALUES ($1, $2, $3) ON CONFLICT (p) DO NOTHING`, 3,
			`INSERT INTO a (p, b, c) VALUES ($1, $2, $3), ($1, $4, $5), ($1, $6, $7) ON CONFLICT (p) DO NOTHING`},
		{"a constant", `INSERT INTO a (p, b, n) VALUES ($1, $2, 1)`, 2, `INSERT INTO a (p, b, n) VALUES ($1, $2, 1), ($1, $3, 1)`},
		{"past nine", `INSERT INTO a VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, 2,
			`INSERT INTO a VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11), ($1, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := insert.Rows(tt.in, tt.n); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
