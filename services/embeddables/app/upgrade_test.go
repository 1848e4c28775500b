package app

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/embeddables/internal/store"
)

// TestUpgrades checks that databases of all released versions upgrade in place.
func TestUpgrades(t *testing.T) {
	start := func(t testing.TB, b *servicetest.Backing) *servicetest.Service { return startOn(t, b, nil) }
	servicetest.CheckUpgrades(t, store.Schema(), start, project, func(s *servicetest.Service) {
		demonstrate(t, s, project)
		odd := servicetest.With(newEmbeddable(project, "emb ' %\\ ü"), "json_string_prod", ` {"a":"\u0000","a":1e400} `)
		s.MustIngest(t, "embeddables", servicetest.With(odd, "title", "\t\"ä€𝄞"))
	},
		"/projects/pr_1/embeddables", "/projects/pr_1/embeddables/emb%20%27%20%25%5C%20%C3%BC", "/projects/pr_1/embeddables/emb_2/versions?direction=asc",
		"/projects/pr_1/embeddables/emb_2/versions/10")
}
