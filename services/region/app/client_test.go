package app

import (
	"errors"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/client"
)

// TestClient checks that the client and the service work together.
func TestClient(t *testing.T) {
	s := start(t, nil)
	put(t, s, "pr_1", "One", "Europe/Berlin")
	c, err := client.New(s.URL, servicetest.InternalKey, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for at, want := range map[string]int{"2022-01-01T00:00:00Z": 60, "2022-07-01T00:00:00Z": 120, "1890-01-01T00:00:00Z": 53} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		where, err := c.LookupAt(t.Context(), "pr_1", moment)
		if err != nil || where != (client.Region{Name: "Europe/Berlin", OffsetMinutes: want}) {
			t.Errorf("%s: %+v, %v", at, where, err)
		}
	}
	where, err := c.Lookup(t.Context(), "pr_1")
	if _, offset := time.Now().In(load(t, "Europe/Berlin")).Zone(); err != nil || where.OffsetMinutes != offset/60 {
		t.Errorf("%+v, %v", where, err)
	}
	if where, err := c.Lookup(t.Context(), "pr_nope"); err != nil || where.Name != "America/Los_Angeles" {
		t.Errorf("%+v, %v", where, err)
	}
	var refused *client.Error
	if _, err := c.Lookup(t.Context(), ""); !errors.As(err, &refused) || refused.Code != "invalid_body" || refused.RequestID == "" {
		t.Errorf("no project: %v", err)
	}
	stranger, err := client.New(s.URL, "another-key", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Lookup(t.Context(), "pr_1"); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a wrong key: %v", err)
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
