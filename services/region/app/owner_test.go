package app

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/client"
)

// TestProjectsOfAnOwner creates and changes a project with the client for programs that manage projects.
func TestProjectsOfAnOwner(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx := t.Context()
	p, err := client.NewProjects(s.InternalURL, servicetest.IngestKey, client.ProjectsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, id := range []string{"pr_1", "ü/日 本?#", "%2F"} {
		if _, err := p.Get(ctx, id); !errors.Is(err, client.ErrNotFound) {
			t.Fatalf("%s is not known yet: %v", id, err)
		}
		if err := p.Put(ctx, client.Project{ID: id, Title: "One", Region: "Asia/Kathmandu"}); err != nil {
			t.Fatal(err)
		}
		want := client.StoredProject{Project: client.Project{ID: id, Title: "One", Region: "Asia/Kathmandu"}, Zone: "Asia/Kathmandu", OffsetMinutes: 345}
		if got, err := p.Get(ctx, id); err != nil || got != want {
			t.Errorf("%s: %v\n%s", id, err, cmp.Diff(want, got))
		}
		if err := p.Put(ctx, client.Project{ID: id, Title: "Two"}); err != nil {
			t.Fatal(err)
		}
		_, offset := time.Now().In(load(t, "America/Los_Angeles")).Zone()
		want = client.StoredProject{Project: client.Project{ID: id, Title: "Two"}, Zone: "America/Los_Angeles", OffsetMinutes: offset / 60}
		if got, err := p.Get(ctx, id); err != nil || got != want {
			t.Errorf("%s: %v\n%s", id, err, cmp.Diff(want, got))
		}
	}
	var rejected *client.Rejected
	if err := p.Put(ctx, client.Project{ID: "pr_1", Title: "One", Region: "Mars/Olympus"}); !errors.As(err, &rejected) || rejected.Code == "" {
		t.Errorf("a region that is none: %v", err)
	}

	stranger, err := client.NewProjects(s.InternalURL, servicetest.InternalKey, client.ProjectsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Get(ctx, "%2F"); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a key that may only ask for regions reads: %v", err)
	}
	if err := stranger.Put(ctx, client.Project{ID: "x", Title: "x"}); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a key that may only ask for regions writes: %v", err)
	}
}

func TestOwnerErrors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, tt := range []struct {
		name, method, path string
		status             int
		code               string
		rest               object
	}{
		{"unknown", "GET", "/internal/projects/pr_9/settings", 404, "project_not_found", object{"projectId": "pr_9"}},
		{"parameter", "GET", "/internal/projects/pr_9/settings?limit=1", 400, "invalid_parameter", object{"projectId": "pr_9", "parameter": "limit"}},
		{"no id", "DELETE", "/internal/projects/", 404, "route_not_found", object{}},
		{"NUL", "GET", "/internal/projects/a%00b/settings", 400, "invalid_parameter", object{"projectId": "a\x00b", "parameter": "projectId"}},
		{"all of them", "DELETE", "/internal/projects", 405, "method_not_allowed", object{}},
		{"a deletion, which is an administrator's and of the whole project", "DELETE", "/internal/projects/pr_9/settings", 405, "method_not_allowed", object{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			servicetest.CheckError(t, s.DoInternal(t, servicetest.Request{Method: tt.method, Path: tt.path, Key: servicetest.IngestKey}), tt.status, tt.code, tt.rest)
		})
	}
	// None of it can be reached from outside.
	servicetest.CheckError(t, s.Do(t, servicetest.Request{Method: http.MethodDelete, Path: "/internal/projects/" + url.PathEscape("pr_9") + "/settings", Key: servicetest.IngestKey}),
		404, "route_not_found", object{})
}

func TestProjectsOutOfReach(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "region:9090", "ftp://region", "http://region?x=1"} {
		if _, err := client.NewProjects(address, "k", client.ProjectsOptions{}); err == nil {
			t.Errorf("the address %q was taken", address)
		}
	}
	if _, err := client.NewProjects("http://region:9090", "", client.ProjectsOptions{}); err == nil {
		t.Error("no key was taken")
	}
	p, err := client.NewProjects("http://127.0.0.1:1", "k", client.ProjectsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Put(t.Context(), client.Project{ID: "pr_1", Title: "One"}); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("without a service: %v", err)
	}
}

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}
