package copiestest

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/minio/minio-go/v7"
	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// hasLost is in the message of each reader that learns of lost changes.
const hasLost = "has lost"

// front is the address of a service, which a restore moves to another database. cut is called at one of the requests.
type front struct {
	*httptest.Server
	mu      sync.Mutex
	service *servicetest.Service
	left    int // the requests until cut
	cut     func()
}

func (f *front) cutAt(n int, cut func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.cut = n, cut
}

func newFront(t *testing.T) *front {
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		to := f.service.URL
		if f.left--; f.left == 0 {
			f.cut()
		}
		f.mu.Unlock()
		target, err := url.Parse(to)
		if err != nil {
			panic(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ErrorLog = log.New(io.Discard, "", 0) // of readers that were killed
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// row is a record that a program without a copy of its own keeps.
type row struct {
	entry, text string
	seq         int64
}

// rows are records by their kind and id.
type rows map[string]row

// apply applies a change as the feed has it, or a row of a stream as Singer has it.
func (r rows) apply(change gjson.Result) {
	seq := change.Get("seq").Int()
	if change.Get("stream").Exists() {
		record := change.Get("record")
		seq = record.Get("seq").Int()
		switch stream := change.Get("stream").String(); {
		case stream == "entries" && record.Get("_sdc_deleted_at").Type == gjson.Null:
			r["entry "+record.Get("entry_id").String()] = row{record.Get("entry_id").String(), record.Get("contact_id").String(), seq}
		case stream == "events":
			r["event "+record.Get("event_key").String()] = row{record.Get("entry_id").String(), record.Get("contact_id").String(), seq}
		case stream == "removals":
			r.remove(record.Get("entry_id").String(), seq)
		}
		return
	}
	if e := change.Get("entry"); e.Exists() {
		r["entry "+e.Get("entry_id").String()] = row{e.Get("entry_id").String(), e.Get("contact_id").String(), seq}
	} else if e := change.Get("event"); e.Exists() {
		r["event "+e.Get("event_key").String()] = row{e.Get("entry_id").String(), e.Get("contact_id").String(), seq}
	} else {
		r.remove(change.Get("entry_id").String(), seq)
	}
}

func (r rows) remove(entry string, seq int64) {
	maps.DeleteFunc(r, func(_ string, v row) bool { return v.entry == entry && v.seq < seq })
}

func (r rows) texts() map[string]string {
	all := map[string]string{}
	for key, v := range r {
		all[key] = v.text
	}
	return all
}

// followed is a project, with the readers that follow it.
type followed struct {
	id, key string
	front   *front
	readers []*reader
}

// reader is a program that keeps a position in the feed.
type reader struct {
	*followed
	name    string
	args    []string
	environ map[string]string
	mends   bool // otherwise the reader stops at lost changes
	copy    bool // it can be verified
	restart func(t *testing.T)
	state   string // the file of the state, if it is in the output
	mu      sync.Mutex
	rows    rows
	last    int64
}

func newFollowed(t *testing.T, f *front, b *servicetest.Backing, id string, bucket *gateway) *followed {
	t.Helper()
	p := &followed{id: id, front: f}
	p.key, _ = b.Keys.Minted(pgkeys.MintOptions{ProjectID: id})
	folder := t.TempDir()
	sync := func(name, to string, more map[string]string, args ...string) *reader {
		r := &reader{followed: p, name: name, mends: true, copy: true, args: append([]string{"sync", "--page-size", "5", "--to", to}, args...), environ: more}
		p.readers = append(p.readers, r)
		return r
	}
	sync("Postgres", pgtest.Database(t, empty).OwnerURL, nil)
	sync("folder", "file://"+folder+"/copy", nil)
	name := "restores-" + strings.ReplaceAll(id, "_", "-")
	if err := bucket.admin().MakeBucket(t.Context(), name, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	sync("S3", "s3://"+name+"/copy", bucket.environ())
	push := sync("push", "", map[string]string{"LECTERN_SYNC_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjMfKQ9r8GKY"})
	push.copy, push.rows = false, rows{}
	hook := httptest.NewServer(http.HandlerFunc(push.receive))
	t.Cleanup(hook.Close)
	push.args = []string{"sync", "--page-size", "5", "--batch", "4", "--to", hook.URL, "--state", folder + "/push.json"}
	for _, name := range []string{"changes", "changes of the backup"} {
		cursor := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
		r := &reader{followed: p, name: name, args: []string{"changes", "--cursor-file", cursor}, rows: rows{}}
		r.restart = func(t *testing.T) {
			if err := os.Remove(cursor); err != nil {
				t.Fatal(err)
			}
			r.rows = rows{}
		}
		p.readers = append(p.readers, r)
	}
	singer := &reader{followed: p, name: "Singer", state: folder + "/singer.json", rows: rows{}}
	singer.restart = func(t *testing.T) {
		singer.rows = rows{}
		singer.args = append(singer.args, "--reset-state")
	}
	p.readers = append(p.readers, singer)
	return p
}

// receive does what the page for receivers says.
func (r *reader) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	message := gjson.ParseBytes(body)
	if message.Get("type").String() == "history_lost" {
		maps.DeleteFunc(r.rows, func(_ string, v row) bool { return v.seq > message.Get("data.after").Int() })
		r.last = 0
	}
	for _, change := range message.Get("data.changes").Array() {
		if seq := change.Get("seq").Int(); seq > r.last {
			r.rows.apply(change)
			r.last = seq
		}
	}
}

func (p *followed) environ() map[string]string {
	return map[string]string{"LECTERN_URL": p.front.URL, "LECTERN_API_KEY": p.key, "LECTERN_PROJECT_ID": p.id}
}

// run runs the reader to its end, and returns the exit code and what it said.
func (r *reader) run(t *testing.T, flags ...string) (code int, said string) {
	t.Helper()
	environ := r.followed.environ()
	maps.Copy(environ, r.environ)
	args := append(slices.Clone(r.args), flags...)
	if r.state != "" {
		args = append([]string{"singer"}, args...)
		if _, err := os.Stat(r.state); err == nil {
			args = append(args, "--state", r.state)
		}
	}
	result := clitest.Run(t, "", environ, args...)
	for line := range strings.Lines(result.Out) {
		switch message := gjson.Parse(line); {
		case r.copy || r.mends:
		case r.state != "" && message.Get("type").String() == "STATE":
			clitest.Write(t, r.state, message.Get("value").Raw)
		case r.state == "" || message.Get("type").String() == "RECORD":
			r.rows.apply(message)
		}
	}
	if r.state != "" {
		r.args = nil // without --reset-state
	}
	return result.Code, result.Err
}

// killed runs the reader in a process, and kills the process at its request number n. The results are whether that
// happened, and whether the reader learned of lost changes before.
func (r *reader) killed(t *testing.T, n int) (killed, told bool) {
	t.Helper()
	var reached atomic.Bool
	r.front.cutAt(n, func() { reached.Store(true) })
	defer r.front.cutAt(0, nil)
	environ := r.followed.environ()
	maps.Copy(environ, r.environ)
	code, said := runCommand(t, environ, func(ended <-chan error) {
		eventually.True(t, "the request, or the end of the process", func() bool { return reached.Load() || len(ended) > 0 })
	}, r.args...)
	return code < 0, strings.Contains(said, hasLost)
}

// source returns the rows that the feed has.
func (p *followed) source(t *testing.T) map[string]string {
	t.Helper()
	all := rows{}
	for line := range strings.Lines(clitest.Must(t, p.environ(), "", "changes")) {
		all.apply(gjson.Parse(line))
	}
	return all.texts()
}

// put stores an entry and an event with a text in the contact.
func (p *followed) put(t *testing.T, text string, ids ...string) {
	t.Helper()
	var entries, events []any
	for _, id := range ids {
		record := map[string]any{"entry_id": id, "group_id": "gr_1", "project_id": p.id, "embeddable_id": "emb_1", "contact_id": text}
		event := maps.Clone(record)
		maps.Copy(record, map[string]any{"created_at": "2022-01-01T00:00:00Z", "updated_at": "2022-01-01T00:00:00Z", "entry_data": fmt.Sprintf(`{"text":%q}`, text)})
		maps.Copy(event, map[string]any{
			"timestamp": "2022-01-01T00:00:00Z", "page_id": "pg_1", "page_key": text, "page_index": 0, "total_pages": 1, "event_type": "flowpage.viewed", "view_type": "flowpage",
		})
		entries, events = append(entries, record), append(events, event)
	}
	p.front.service.MustIngest(t, "entries", entries...)
	p.front.service.MustIngest(t, "events", events...)
}

// administer runs a command of the administrator.
func administer(t *testing.T, s *servicetest.Service, args ...string) {
	t.Helper()
	clitest.Must(t, map[string]string{"LECTERN_INTERNAL_URL": s.InternalURL, "LECTERN_ADMIN_API_KEY": servicetest.AdminKey}, "", args...)
}

func numbered(format string, from, to int) (ids []string) {
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf(format, i))
	}
	return ids
}

// importLost sends again what a copy in Postgres has put aside, as the page about sync says.
func importLost(t *testing.T, p *followed) {
	t.Helper()
	conn := pgtest.Connect(t, p.readers[0].args[4])
	environ := map[string]string{"LECTERN_INTERNAL_URL": p.front.service.InternalURL, "LECTERN_INGEST_API_KEY": servicetest.IngestKey, "LECTERN_PROJECT_ID": p.id}
	for kind, resource := range map[string]string{"entry": "entries", "event": "events"} {
		var records string
		if err := conn.QueryRow(t.Context(), `SELECT string_agg(record::text, E'\n') FROM lectern.lectern_lost WHERE change = $1`, kind).Scan(&records); err != nil {
			t.Fatal(err)
		}
		clitest.Must(t, environ, records, "import", resource, "-")
	}
	if found := p.source(t); found["entry lost_0"] != "lost" {
		t.Errorf("after the import: %v", found)
	}
}

// TestLongRestores checks each reader after each way of a restore: the reader equals its source again, or has stopped with
// a sentence. No reader that has nothing of what was lost is told anything. Processes are killed in between.
func TestLongRestores(t *testing.T) {
	needs.Long(t)
	bucket := newGateway(t)
	primary := pgtest.PrivatePrimary(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	on := func(t *testing.T, db pgtest.DB) *servicetest.Service {
		t.Helper()
		return servicetest.Start(t, &servicetest.Backing{DB: db, Redis: redis, Keys: keys}, entries.Run, func(c *entries.Config) *service.Config { return &c.Config },
			map[string]string{"MIGRATE_ON_START": "true", "DATABASE_URL": db.OwnerURL, "INGEST_DATABASE_URL": db.OwnerURL, "REMOVE_DATABASE_URL": db.OwnerURL, "MIGRATE_DATABASE_URL": db.OwnerURL, "LOG_LEVEL": "error"})
	}
	superuser := func(t *testing.T, server *pgtest.Instance, sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), server.AdminURL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// Each way makes a backup, and returns what restores it and returns a service over it.
	type way = func(t *testing.T, s *servicetest.Service) (restore func() *servicetest.Service)
	dump := func(into func(t *testing.T, s *servicetest.Service) *servicetest.Service, flags ...string) way {
		return func(t *testing.T, s *servicetest.Service) func() *servicetest.Service {
			file := filepath.Join(t.TempDir(), "dump")
			pgtest.Client(t, "pg_dump", "--format=custom", "--file="+file, s.DB.OwnerURL)
			return func() *servicetest.Service {
				restored := into(t, s)
				pgtest.Client(t, "pg_restore", append(flags, "--dbname="+restored.DB.OwnerURL, file)...)
				return restored
			}
		}
	}
	same := func(_ *testing.T, s *servicetest.Service) *servicetest.Service { return s }
	standby := func(lags bool) way {
		return func(t *testing.T, s *servicetest.Service) func() *servicetest.Service {
			other := primary.Standby(t)
			if lags {
				superuser(t, other, `ALTER SYSTEM SET primary_conninfo = ''`)
				superuser(t, other, `SELECT pg_reload_conf()`)
				eventually.Succeeds(t, "the standby receives no more", func() error {
					conn, err := pgx.Connect(t.Context(), other.AdminURL())
					if err != nil {
						return err
					}
					defer conn.Close(t.Context())
					_, err = conn.Exec(t.Context(), `SELECT 1 / (SELECT count(*) = 0 FROM pg_stat_wal_receiver)::int`)
					return err
				})
			}
			return func() *servicetest.Service {
				if !lags {
					superuser(t, primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
					superuser(t, primary, `SELECT pg_reload_conf()`)
					s.Exec(t, `CREATE TABLE received ()`) // is on both servers once it is committed
				}
				if err := other.Promote(t.Context()); err != nil {
					t.Fatal(err)
				}
				return on(t, other.Here(s.DB))
			}
		}
	}
	loaded := dump(func(t *testing.T, s *servicetest.Service) *servicetest.Service {
		s.Exec(t, `TRUNCATE entries, events, removals, project_changes, lost_numbers, progress`)
		return s
	}, "--data-only", "--table=entries", "--table=events", "--table=removals", "--table=project_changes", "--table=lost_numbers", "--table=progress")
	var cells, equal, stopped, alarms, killed int
	for _, tt := range []struct {
		name   string
		loses  bool
		rounds int
		backup way
	}{
		{"a dump into another database", true, 1, dump(func(t *testing.T, _ *servicetest.Service) *servicetest.Service {
			return on(t, primary.Database(t, empty))
		}, "--clean", "--if-exists")},
		{"a dump into the same database, twice", true, 2, dump(same, "--clean")},
		{"a standby that lags", true, 1, standby(true)},
		{"data in the same tables, and lectern restored", true, 1, func(t *testing.T, s *servicetest.Service) func() *servicetest.Service {
			restore := loaded(t, s)
			return func() *servicetest.Service {
				s := restore()
				administer(t, s, "restored")
				return s
			}
		}},
		{"a standby that has everything", false, 1, standby(false)}, // the last one, because the primary waits for its standby from now on
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFront(t)
			f.service = on(t, primary.Database(t, empty))
			projects := map[string]*followed{}
			each := func(do func(when string, p *followed)) {
				for _, when := range []string{"before", "after", "slow"} {
					do(when, projects[when])
				}
			}
			id := strings.NewReplacer(" ", "_", ",", "").Replace(tt.name)
			for _, when := range []string{"before", "after", "slow"} {
				projects[when] = newFollowed(t, f, f.service.Backing, fmt.Sprintf("%.40s_%s", id, when), bucket)
				projects[when].put(t, "x", numbered("en_%d", 0, 12)...)
			}
			// The projects are as old as those whose numbers follow the clock.
			for _, table := range []string{"entries SET seq = seq", "events SET seq = seq", "project_changes SET last_seq = last_seq"} {
				f.service.Exec(t, `UPDATE `+table+` - 3600000000`)
			}
			f.service.Exec(t, `DELETE FROM lost_numbers`)
			// read runs a reader to its end, and reports whether the reader learned of lost changes.
			read := func(r *reader, flags ...string) (told bool) {
				t.Helper()
				code, said := r.run(t, flags...)
				told = strings.Contains(said, hasLost)
				if code != shell.ExitOK && (code != 4 || !told || r.mends) {
					t.Errorf("%s of %s: exit code %d: %s", r.name, r.id, code, said)
				}
				return told || code != shell.ExitOK
			}
			each(func(_ string, p *followed) {
				for _, r := range p.readers {
					if read(r) {
						t.Errorf("%s of %s is told of a loss", r.name, p.id)
					}
				}
			})
			restore := tt.backup(t, f.service)
			for round := range tt.rounds {
				each(func(when string, p *followed) {
					if when == "slow" && round == 0 { // the clock of the lost life is ahead
						f.service.Exec(t, `UPDATE project_changes SET last_seq = last_seq + 60000000 WHERE project_id = $1`, p.id)
					}
					p.put(t, "lost", append(numbered("lost_%d", 0, 3), "en_3")...)
					administer(t, f.service, "erase", "--project", p.id, "--entry", "en_5")
					for _, r := range p.readers {
						if r.name != "changes of the backup" && read(r) {
							t.Errorf("%s of %s is told of a loss before it", r.name, p.id)
						}
					}
				})
				now := restore()
				f.mu.Lock()
				f.service = now
				f.mu.Unlock()
				each(func(when string, p *followed) {
					fresh := append(numbered("fresh_%d", 10*round, 10*round+4), "en_4")
					if when != "after" {
						p.put(t, "fresh", fresh...)
					}
					var told []string
					for n, r := range p.readers {
						knows := false
						if r.mends && (n+round+len(when))%2 == 0 {
							var cut bool
							if cut, knows = r.killed(t, 1+(killed+n)%9); cut {
								killed++
							}
						}
						if read(r) || knows {
							told = append(told, r.name)
						}
					}
					if when == "after" {
						p.put(t, "fresh", fresh...)
					}
					p.put(t, fmt.Sprint("last ", round), "en_0")
					for _, r := range p.readers {
						cells++
						behind := round == 0 && r.name == "changes of the backup"
						knows := slices.Contains(told, r.name)
						if knows && (!tt.loses || behind) {
							alarms++
							t.Errorf("%s of %s is told of a loss, and has nothing of it", r.name, p.id)
						} else if !knows && tt.loses && !behind {
							t.Errorf("%s of %s is not told", r.name, p.id)
						}
						if again := read(r); again && r.mends {
							t.Errorf("%s of %s is told again", r.name, p.id)
						} else if again {
							stopped++
							r.restart(t)
							if read(r) {
								t.Errorf("%s of %s begins from the beginning, and is told of a loss", r.name, p.id)
							}
						} else {
							equal++
						}
						if r.copy {
							read(r, "--verify")
						} else if diff := cmp.Diff(p.source(t), r.rows.texts()); diff != "" {
							t.Errorf("%s of %s: -source +reader: %s", r.name, p.id, diff)
						}
					}
				})
			}
			if tt.loses {
				p := projects["after"]
				importLost(t, p)
				for _, r := range p.readers {
					if read(r) {
						t.Errorf("%s of %s is told of a loss by an import", r.name, p.id)
					}
					if r.copy {
						read(r, "--verify")
					}
				}
			}
		})
	}
	for _, tt := range []struct {
		name   string
		remove func(t *testing.T, s *servicetest.Service, project string)
	}{
		{"a project that is younger than the backup", func(t *testing.T, s *servicetest.Service, _ string) {
			s.Exec(t, `TRUNCATE entries, events, removals, project_changes, lost_numbers, progress`) // as the backup is
		}},
		{"a removed project", func(t *testing.T, s *servicetest.Service, project string) {
			if a := s.DoInternal(t, servicetest.Request{Method: http.MethodDelete, Path: "/internal/projects/" + project, Key: servicetest.AdminKey}); a.Status != http.StatusOK {
				t.Fatalf("%d: %s", a.Status, a.Body)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFront(t)
			f.service = on(t, pgtest.Database(t, empty))
			p := newFollowed(t, f, f.service.Backing, strings.ReplaceAll(tt.name, " ", "_"), bucket)
			p.put(t, "x", numbered("en_%d", 0, 12)...)
			for _, r := range p.readers {
				if code, said := r.run(t); code != shell.ExitOK {
					t.Fatalf("%s: exit code %d: %s", r.name, code, said)
				}
			}
			tt.remove(t, f.service, p.id)
			for _, r := range p.readers {
				if code, said := r.run(t); r.copy && (code != shell.ExitFailure || !strings.Contains(said, "has no changes any more")) {
					t.Errorf("%s of no project: exit code %d: %s", r.name, code, said)
				}
			}
			p.put(t, "fresh", "fresh")
			for _, r := range p.readers {
				cells++
				code, said := r.run(t)
				if told := strings.Contains(said, hasLost); !told || r.rows != nil && r.mends != (code == shell.ExitOK) || r.copy && code != 4 {
					t.Errorf("%s: exit code %d: %s", r.name, code, said)
				}
				if r.copy {
					if code, said := r.run(t, "--verify", "--repair"); code != shell.ExitOK {
						t.Errorf("%s is repaired: exit code %d: %s", r.name, code, said)
					}
				}
				if r.restart != nil {
					r.restart(t)
				}
				flags := []string{}
				if r.copy {
					flags = append(flags, "--verify")
				}
				if code, said := r.run(t, flags...); code != shell.ExitOK {
					t.Errorf("%s at the end: exit code %d: %s", r.name, code, said)
				}
				if r.mends && !r.copy {
					equal++
				} else {
					stopped++
				}
				if diff := cmp.Diff(p.source(t), r.rows.texts()); !r.copy && diff != "" {
					t.Errorf("%s: -source +reader: %s", r.name, diff)
				}
			}
		})
	}
	t.Logf("%d cells: %d equal, %d stopped with a sentence; %d false alarms; %d processes killed", cells, equal, stopped, alarms, killed)
}
