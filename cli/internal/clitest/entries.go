package clitest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	entries "github.com/lectern-dev/lectern/services/entries/app"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// Bare is the schema of a database without tables.
var Bare = migrate.Schema{Name: "bare", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}

// Entries runs the entries service, which brings its schema with it, and returns what commands need for pr_1.
func Entries(t testing.TB) (*servicetest.Service, map[string]string) {
	t.Helper()
	s := EntriesOn(t, servicetest.NewBacking(t, Bare), nil)
	return s, map[string]string{
		"LECTERN_URL": s.URL, "LECTERN_INTERNAL_URL": s.InternalURL, "LECTERN_PROJECT_ID": "pr_1",
		"LECTERN_API_KEY": s.Keys.Key("pr_1"), "LECTERN_INGEST_API_KEY": servicetest.IngestKey, "LECTERN_ADMIN_API_KEY": servicetest.AdminKey,
	}
}

// EntriesOn runs the entries service on b, at the public address of an earlier service unless that is nil.
func EntriesOn(t testing.TB, b *servicetest.Backing, earlier *servicetest.Service) *servicetest.Service {
	t.Helper()
	return servicetest.Start(t, b, entries.Run, func(c *entries.Config) *service.Config { return &c.Config }, Migrating(earlier))
}

// Migrating returns the environment of a service that migrates by itself and listens at the public address of an earlier
// service, unless that is nil.
func Migrating(earlier *servicetest.Service) map[string]string {
	environ := map[string]string{"MIGRATE_ON_START": "true"}
	if earlier != nil {
		environ["LISTEN_PUBLIC"] = strings.TrimPrefix(earlier.URL, "http://")
	}
	return environ
}

// Warehouse returns the URL of an empty database, for a copy.
func Warehouse(t testing.TB) string {
	t.Helper()
	return pgtest.Database(t, Bare).OwnerURL
}

// Entry returns an entry of pr_1 that was created and updated at a minute of a day.
func Entry(id string, minute int) servicetest.Object {
	at := time.Date(2024, 1, 1, 0, minute, 0, 0, time.UTC).Format(time.RFC3339)
	return servicetest.Object{
		"entry_id": id, "group_id": "g", "project_id": "pr_1", "embeddable_id": "m", "contact_id": "c",
		"created_at": at, "updated_at": at, "entry_data": fmt.Sprintf(`{"text":"<&> \n \"%d\"","fill":"%s"}`, minute, strings.Repeat("x", 500)),
	}
}

// Event returns the n-th event of an entry of pr_1.
func Event(entry string, n int) servicetest.Object {
	return servicetest.Object{
		"entry_id": entry, "group_id": "g", "project_id": "pr_1", "embeddable_id": "m", "contact_id": "c",
		"timestamp": time.Date(2024, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339), "event_type": "custom_event:triggered",
		"custom_event_name": "a, <b>", "custom_event_props": fmt.Sprintf(`{"n":%d}`, n), "event_id": fmt.Sprint(entry, "/", n), "url": "https://example.com/?a=1&b=2",
	}
}
