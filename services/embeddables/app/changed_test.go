package app

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestChangedEmbeddables(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	servicetest.CheckChanges(t, s, s.Keys.Key(project), "/projects/pr_1/embeddables", "embeddable_id", "embeddables", "embeddable_changes",
		func(id string) { s.MustIngest(t, "embeddables", newEmbeddable(project, id)) })
}

// TestChangedVersions checks that an embeddable changes with its definition and its versions, and that all versions of a
// new embeddable are new.
func TestChangedVersions(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	list := "/projects/" + project + "/embeddables"
	number := func() string { return s.Get(t, key, list).Header.Get("X-Last-Seq") }
	versions := func(id, after string) (numbers []string) {
		found, _ := s.List(t, key, list+"/"+id+"/versions?direction=asc&changed_after="+after)
		for _, v := range found {
			numbers = append(numbers, fmt.Sprint(v["version_number"]))
		}
		return numbers
	}
	check := func(what, after string, want, wantVersions []string) {
		t.Helper()
		found, _ := s.List(t, key, list+"?changed_after="+after)
		if diff := cmp.Diff(want, servicetest.Column(found, "embeddable_id")); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if diff := cmp.Diff(wantVersions, versions("emb_1", after)); diff != "" {
			t.Errorf("versions after %s: %s", what, diff)
		}
	}
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_2"))
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_1", 1), newVersion(project, "emb_2", 1))
	before := number()
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	check("a new embeddable", before, []string{"emb_1"}, []string{"1"})
	before = number()
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_2", 1), newVersion(project, "emb_1", 2))
	check("a version", before, []string{"emb_1"}, []string{"2"})
	before = number()
	s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_1"), "json_string_prod", `{"new":1}`))
	check("a definition", before, []string{"emb_1"}, nil)
}
