package pagelist

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestIDSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := newIDSet(), map[string]bool{}
		for range rapid.IntRange(0, 2_000).Draw(t, "adds") {
			id := fmt.Sprint(rapid.IntRange(0, 1_000).Draw(t, "id"))
			if isNew := s.add([]byte(id)); isNew == model[id] {
				t.Fatalf("add(%s) = %v with the model at %v", id, isNew, model[id])
			}
			model[id] = true
		}
	})
}

func TestIDSetIsSmall(t *testing.T) {
	const n = 1_000_000
	s := newIDSet()
	for i := range n {
		if !s.add(fmt.Appendf(nil, "en_%d", i)) {
			t.Fatalf("id %d is taken for another", i)
		}
	}
	slots := 0
	for i := range s.parts {
		slots += len(s.parts[i].slots)
	}
	if perID := slots * 8 / n; perID > 14 {
		t.Errorf("%d bytes an id", perID)
	}
}

func BenchmarkIDSet(b *testing.B) {
	var id []byte
	s := newIDSet()
	i := 0
	for b.Loop() {
		id = fmt.Appendf(id[:0], "en_%d", i)
		s.add(id)
		i++
	}
}
