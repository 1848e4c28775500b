package servicetest

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// Object is a decoded JSON record.
type Object = map[string]any

// absence is the type of Absent.
type absence struct{}

// Absent stands for an absent field.
var Absent = absence{}

// With returns a copy of o with name set to value, or without it if value is Absent.
func With(o Object, name string, value any) Object {
	c := maps.Clone(o)
	if value == Absent {
		delete(c, name)
	} else {
		c[name] = value
	}
	return c
}

// Column returns the field of each record of a list. A value that is not a string is "".
func Column(list []Object, field string) []string {
	out := make([]string, len(list))
	for i, o := range list {
		out[i], _ = o[field].(string)
	}
	return out
}

// List requests a list, and fails t unless the answer is 200.
func (s *Service) List(t testing.TB, key, path string) ([]Object, Answer) {
	t.Helper()
	a := s.Get(t, key, path)
	if a.Status != http.StatusOK || a.Err != nil {
		t.Fatalf("GET %s: %d %.300s %v", path, a.Status, a.Body, a.Err)
	}
	var list []Object
	a.JSON(t, &list)
	return list, a
}

// Walk follows cursors from path to the end and returns all records. between, which may be nil, is called before each
// further page.
func (s *Service) Walk(t testing.TB, key, path string, between func()) []Object {
	t.Helper()
	const most = 10000
	var all []Object
	for range most {
		list, a := s.List(t, key, path)
		all = append(all, list...)
		next := a.Header.Get("X-Next-Cursor")
		if next == "" {
			return all
		}
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("cursor", next)
		u.RawQuery = q.Encode()
		path = u.String()
		if between != nil {
			between()
		}
	}
	t.Fatalf("the walk of %s does not end", path)
	return nil
}

// Exec runs SQL as the owner of the service's database.
func (s *Service) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := s.DB.Owner.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
