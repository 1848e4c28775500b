package servicetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// Pick returns one of its arguments.
func Pick(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

// CheckTenancy sends random requests with random keys. No answer contains data of a project that the key is not for, and
// only a project's own key gets data. The service is no [Shared] one, as many of the keys are refused.
//
// store stores records of a project, with the same ids in every project and with marker in each record. ask returns a
// random path after /projects/{projectId}, with its query: of records that exist and that do not, with good and bad
// parameters. cursor is one of any list and project. keys are more keys, which may read nothing.
func (s *Service) CheckTenancy(t *testing.T, store func(project, marker string), ask func(random *rand.Rand, cursor string) string, keys ...string) {
	t.Helper()
	const projects, requests, few = 4, 1200, 20
	marker := func(p int) string { return fmt.Sprintf("secret-of-%d-", p) }
	name := func(p int) string { return fmt.Sprintf("tenant_%d", p) }
	var own []string // by project
	for p := range projects {
		store(name(p), marker(p))
		own = append(own, s.Keys.Key(name(p)))
	}
	keys = append(own, append(keys, "", "rk_nonsense")...)
	random := rand.New(rand.NewPCG(5, 6))
	cursors := []string{"none"}
	answered := map[int]int{}
	for range requests {
		k, p := random.IntN(len(keys)), random.IntN(projects)
		if k < projects && random.IntN(2) == 0 {
			p = k
		}
		path := Pick(random, name(p), name(p), strings.ToUpper(name(p)), strings.Replace(name(p), "_", "%5F", 1), name(p)+"%2F..%2F"+name(random.IntN(projects)))
		isOwn := k < projects && (path == name(k) || path == strings.Replace(name(k), "_", "%5F", 1))
		path = "/projects/" + path + ask(random, Pick(random, cursors...))
		a := s.Do(t, Request{Path: path, Key: keys[k], Headers: map[string]string{"Accept": Pick(random, "application/json", "application/x-ndjson")}})
		answered[a.Status]++
		for other := range projects {
			if (k >= projects || other != k) && bytes.Contains(a.Body, []byte(marker(other))) {
				t.Fatalf("key %d: %s answered %d with data of project %d", k, path, a.Status, other)
			}
		}
		if a.Status == http.StatusOK && !isOwn {
			t.Fatalf("key %d: %s answered 200", k, path)
		}
		if c := a.Header.Get("X-Next-Cursor"); c != "" {
			cursors = append(cursors, c)
		}
	}
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound} {
		if answered[status] < few {
			t.Errorf("few answers were %d: %v", status, answered)
		}
	}
	if answered[http.StatusInternalServerError] != 0 {
		t.Errorf("answers: %v", answered)
	}
}
