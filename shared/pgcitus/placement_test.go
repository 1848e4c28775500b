package pgcitus_test

import (
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgcitus"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// TestHashText checks that hashText equals the server's hash for text of any length and with any characters.
func TestHashText(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.Server(t).AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	random := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, 500)
	for i := range texts {
		runes := make([]rune, random.IntN(70))
		for j := range runes {
			runes[j] = []rune("aZ0_-/ äß€😀")[random.IntN(11)]
		}
		texts[i] = string(runes)
	}
	rows, err := conn.Query(t.Context(), `SELECT hashtext(u COLLATE "C") FROM unnest($1::text[]) WITH ORDINALITY AS x (u, n) ORDER BY n`, texts)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil || len(want) != len(texts) {
		t.Fatalf("%d hashes, %v", len(want), err)
	}
	for i, text := range texts {
		if got := int32(pgcitus.HashText(text)); got != want[i] {
			t.Errorf("%q is hashed to %d, and by the server to %d", text, got, want[i])
		}
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct{ conns, workers, want int }{
		{8, 1, 8}, {8, 2, 4}, {8, 3, 4}, {8, 4, 4}, {8, 8, 2}, {8, 100, 1}, {1, 2, 1}, {3, 2, 1}, {16, 5, 7},
	} {
		if got := pgcitus.Share(tt.conns, tt.workers); got != tt.want {
			t.Errorf("one of %d workers gets %d of %d connections, want %d", tt.workers, got, tt.conns, tt.want)
		}
	}
}
