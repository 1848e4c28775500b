package copiestest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/messages"
	"github.com/lectern-dev/lectern/copies/push"
)

var maskSecret = []byte("a secret of the hashes")

func mask(t *testing.T, secret []byte) *copies.Mask {
	t.Helper()
	m, err := copies.NewMask([]string{"contact_id", "url", "definition", "entry_data.email", "entry_data.a.b", "timestamp"}, []string{"page_key", "entry_data.phone"}, secret)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hashed(text string) string {
	h := hmac.New(sha256.New, maskSecret)
	h.Write([]byte(text))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestMaskedCopies checks that no copy of any kind gets a value that is left out or hashed, in whatever way the value is written.
// All else stays byte for byte.
func TestMaskedCopies(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.source = newWholeSource(t)
	w.define(t, "emb_1", 1, "draft", 1)
	phone := `"` + hashed(`"Ada-canary"`) + `"`
	data := []struct{ name, in, want string }{
		{"plain", `{"email":"Ada-canary","n":1}`, `{"n":1}`},
		{"last", `{ "n" : 1.50 , "email":"Ada-canary" }`, `{ "n" : 1.50 }`},
		{"only", `{"email":"Ada-canary"}`, `{}`},
		{"escaped", `{"\u0065mai\u006c":"Ada-canary","z":"\u00e9"}`, `{"z":"\u00e9"}`},
		{"doubled", `{"email":"x Ada-canary","n":1e400,"email":["Ada-canary"]}`, `{"n":1e400}`},
		{"not of jsonb", `{"email":"Ada-canary","n":"\u0000\ud800"}`, `{"n":"\u0000\ud800"}`},
		{"nested", `{"in":{"email":"stays"},"a.b":"Ada-canary","a":{"b":1}}`, `{"in":{"email":"stays"},"a":{"b":1}}`},
		{"hashed", `{"phone": "\u0041da-canary" ,"n":1}`, `{"phone": ` + phone + ` ,"n":1}`},
		{"hashed objects", `{"phone":{"b":[1.0, 2],"a":1}}`, `{"phone":"` + hashed(`{"a":1,"b":[1.0,2]}`) + `"}`},
		{"null", `{"phone":null}`, `{"phone":null}`},
		{"no object", `["Ada-canary"]`, `{}`},
		{"text", `"Ada-canary"`, `{}`},
		{"deep", `{"email":` + strings.Repeat("[", 9_990) + `"Ada-canary"` + strings.Repeat("]", 9_990) + `}`, `{}`},
		{"empty", `{}`, `{}`},
	}
	want := map[string]string{}
	for i, d := range data {
		e := entry(fmt.Sprintf("en_%d", i), i, d.in)
		e["contact_id"] = "Ada-canary"
		w.MustIngest(t, "entries", e)
		want[fmt.Sprintf("en_%d", i)] = d.want
	}
	w.person(t, "en_person", "Ada-canary")
	want["en_person"] = `{"n":1,"text":"Ada-canary"}` // another key
	m := mask(t, maskSecret)
	clean := func(kind, text string) {
		t.Helper()
		if n := strings.Count(strings.ReplaceAll(text, `{"n":1,"text":"Ada-canary"}`, ""), "Ada-canary"); n > 0 {
			t.Errorf("%s has the person %d times: %.2000s", kind, n, text)
		}
	}
	run := func(d copies.Destination, m *copies.Mask) error {
		_, err := copies.Run(t.Context(), copies.Options{Client: w.client, Source: w.is(), Destination: d, Mask: m, Project: true, PageSize: 7, Attempts: 1})
		return err
	}

	// Postgres and files, which are verified, too.
	pg := w.options()
	pg.Mask = m
	l := &lake{w.source, filepath.Join(t.TempDir(), "copy")}
	folder := files.Options{Source: w.is(), Columns: columns.Choice{All: true}, Mask: m}
	for _, kind := range []struct {
		name string
		open func(*copies.Mask) copies.Destination
		text func() string
	}{
		{"Postgres", func(m *copies.Mask) copies.Destination {
			o := pg
			o.Mask = m
			return w.open(t, o)
		}, func() string {
			return w.value(t, `SELECT (SELECT json_agg(e)::text FROM "Copy of shop".entries e) || (SELECT json_agg(e)::text FROM "Copy of shop".events e)
				|| (SELECT json_agg(e)::text FROM "Copy of shop".embeddables e) || (SELECT json_agg(e)::text FROM "Copy of shop".lectern_columns e)`)
		}},
		{"files", func(m *copies.Mask) copies.Destination {
			o := folder
			o.Mask = m
			return files.Folder(l.path, o)
		}, func() string {
			var all strings.Builder
			for _, text := range l.objects(t, "*") {
				all.WriteString(text)
			}
			return all.String()
		}},
	} {
		if err := run(kind.open(m), m); err != nil {
			t.Fatalf("%s: %v", kind.name, err)
		}
		text := kind.text()
		if kind.name == "Postgres" { // jsonb has another form, and the column text has the other key
			text = strings.NewReplacer(`{"n": 1, "text": "Ada-canary"}`, "").Replace(text)
		} else {
			text = strings.NewReplacer(" text:Ada-canary", "", "Ada-canary", "").Replace(text)
			for _, e := range l.manifest(t).Entries {
				for _, f := range e.Files {
					for _, r := range l.rowsOf(t, f.Path, f.Rows) {
						if r["entry_data"] != want[r["entry_id"].(string)] || r["contact_id"] != nil {
							t.Errorf("%v; want %s", r, want[r["entry_id"].(string)])
						}
					}
				}
			}
			for _, f := range l.manifest(t).Events {
				for _, r := range l.rowsOf(t, f.Path, f.Rows) {
					if r["contact_id"] != nil || r["url"] != nil || r["timestamp"] != nil || r["page_key"] != hashed(`"Ada-canary"`) {
						t.Errorf("%v", r)
					}
				}
			}
		}
		clean(kind.name, text)
		found, err := copies.Verify(t.Context(), copies.Verification{
			Options: copies.Options{Client: w.client, Source: w.is(), Destination: kind.open(m), Mask: m, Project: true, PageSize: 50, Attempts: 1},
			Folder:  t.TempDir(), Name: func(d copies.Difference) error { t.Errorf("%s: %+v", kind.name, d); return nil },
		})
		if err != nil || found.Left != 0 {
			t.Errorf("%s: %+v, %v", kind.name, found, err)
		}
		for _, other := range []*copies.Mask{nil, mask(t, []byte("another secret than before"))} {
			if err := run(kind.open(other), other); err == nil || !strings.Contains(err.Error(), "give --without, --hash and the secret as before") || strings.Contains(err.Error(), "another secret") {
				t.Errorf("%s with another mask: %v", kind.name, err)
			}
		}
	}
	if null := w.value(t, `SELECT count(*)::text FROM "Copy of shop".entries WHERE contact_id IS NULL`); null != fmt.Sprint(len(want)) {
		t.Errorf("%s contacts are null", null)
	}

	// Messages and requests lack the columns.
	for name, p := range protocols {
		var out bytes.Buffer
		writer, err := messages.NewWriter(&out, p, project, gjson.Result{}, gjson.Result{}, m)
		if err == nil {
			err = run(writer, m)
		}
		if err != nil {
			t.Fatal(err)
		}
		clean(name, strings.ReplaceAll(out.String(), `{\"n\":1,\"text\":\"Ada-canary\"}`, ""))
		for line := range strings.Lines(out.String()) {
			record := gjson.Parse(line)
			if record.Get("type").String() == "SCHEMA" && record.Get("schema.properties.contact_id").Exists() || record.Get(p.row+".contact_id").Exists() || record.Get(p.row+".json_string_prod").Exists() {
				t.Errorf("%s", line)
			}
			if id := record.Get(p.row + ".entry_id").String(); record.Get(p.stream).String() == "entries" && record.Get(p.row+".entry_data").String() != want[id] {
				t.Errorf("%s; want %s", line, want[id])
			}
		}
	}
	var bodies bytes.Buffer
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = bodies.ReadFrom(r.Body) }))
	defer receiver.Close()
	to, err := push.New(push.Options{URL: receiver.URL, Secret: push.Secret(make([]byte, 24)), Source: w.is(), Batch: 10, Mask: m})
	if err == nil {
		err = run(to, m)
	}
	if body := bodies.String(); err != nil || strings.Contains(body, "contact_id") || strings.Contains(body, `"timestamp":"2022`) || !strings.Contains(body, hashed(`"Ada-canary"`)) {
		t.Errorf("%v: %s", err, body)
	}
	clean("a receiver", strings.ReplaceAll(bodies.String(), `{\"n\":1,\"text\":\"Ada-canary\"}`, ""))
}

func TestMaskRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		without, hash []string
		secret, says  string
	}{
		{[]string{"entry_id"}, nil, "", "--without was given as entry_id, which the copy needs"},
		{nil, []string{"seq"}, "", "--hash was given as seq, which the copy needs"},
		{[]string{"contact"}, nil, "", "--without was given as contact; allowed: attachments, changed_at, contact_id,"},
		{nil, []string{"created_at"}, "a secret of the hashes", "created_at, which is no text"},
		{nil, []string{"contact_id"}, "short", "a secret of at least 16 bytes"},
		{[]string{"entry_data.x"}, []string{"entry_data.x"}, "a secret of the hashes", "given to --without and to --hash"},
	} {
		if _, err := copies.NewMask(tt.without, tt.hash, []byte(tt.secret)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v; want %q", err, tt.says)
		}
	}
	if m, err := copies.NewMask(nil, nil, nil); m != nil || err != nil || cmp.Diff("", m.String()) != "" {
		t.Errorf("%v, %v", m, err)
	}
}
