package servicetest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// CheckProjectRemoval removes a project from s with several requests, whose answers must be want. It checks that only
// an administrator can do so, and only on the internal port. Afterwards no table has a row of the project, and all rows
// of other projects are kept. readOnly is a service on the same databases without REMOVE_DATABASE_URL.
func CheckProjectRemoval(t *testing.T, s, readOnly *Service, project string, want ...string) {
	t.Helper()
	remove := func(s *Service, key, query string) Answer {
		t.Helper()
		return s.DoInternal(t, Request{Method: http.MethodDelete, Path: "/internal/projects/" + project + query, Key: key})
	}
	own, others := rowsOf(t, s, project)
	if own == 0 || others == 0 {
		t.Fatalf("%d rows of the project, %d of others: both must have some", own, others)
	}
	for _, key := range []string{"", IngestKey, InternalKey, "tester=" + AdminKey, s.Keys.Key(project)} {
		if a := remove(s, key, ""); a.Status != 401 {
			t.Errorf("with the key %q: %d", key, a.Status)
		}
	}
	if a := remove(s, AdminKey, "?force=1"); a.Status != 400 {
		t.Errorf("with a parameter: %d", a.Status)
	}
	if a := remove(readOnly, AdminKey, ""); a.Status != 503 || !strings.Contains(string(a.Body), "REMOVE_DATABASE_URL is not set") {
		t.Errorf("without a role that deletes: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, Request{Method: http.MethodDelete, Path: "/internal/projects/" + project, Key: AdminKey}); a.Status != 404 {
		t.Errorf("on the public port: %d", a.Status)
	}
	if still, _ := rowsOf(t, s, project); still != own {
		t.Fatalf("refused requests removed %d rows", own-still)
	}
	for i, answer := range want {
		if a := remove(s, AdminKey, ""); a.Status != 200 || strings.TrimSpace(string(a.Body)) != answer {
			t.Errorf("request %d: %d %s; want %s", i+1, a.Status, a.Body, answer)
		}
	}
	left, kept := rowsOf(t, s, project)
	if left != 0 || kept != others {
		t.Errorf("%d rows of the project are left; %d of other projects, want %d", left, kept, others)
	}
}

// rowsOf counts the rows of a project and those of other projects, in all tables with a project.
func rowsOf(t *testing.T, s *Service, project string) (own, others int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `
		SELECT format('SELECT count(*) FILTER (WHERE project_id = $1), count(*) FILTER (WHERE project_id <> $1) FROM %I', table_name)
		FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'project_id'`)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range counts {
		var mine, theirs int
		if err := conn.QueryRow(ctx, sql, project).Scan(&mine, &theirs); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		own, others = own+mine, others+theirs
	}
	return own, others
}
