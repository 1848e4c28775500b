package app

import (
	"fmt"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestRemoveProject(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	demonstrate(t, s, project)
	key := s.Keys.Key(project)
	fill(t, s, project, 9_997)
	servicetest.CheckProjectRemoval(t, s, startOn(t, s.Backing, map[string]string{"REMOVE_DATABASE_URL": ""}), project,
		`{"embeddables":10000,"versions":0,"definitions":0,"more":true}`,
		`{"embeddables":0,"versions":3,"definitions":7}`,
		`{"embeddables":0,"versions":0,"definitions":0}`)
	if a := s.Get(t, key, "/projects/"+project+"/embeddables"); a.Status != 200 || string(a.Body) != "[]\n" && string(a.Body) != "[]" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	// Later records are stored completely.
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	if a := s.Get(t, key, fmt.Sprintf("/projects/%s/embeddables/emb_1", project)); a.Status != 200 {
		t.Errorf("an embeddable that came later: %d %s", a.Status, a.Body)
	}
}
