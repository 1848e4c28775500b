package files_test

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/files"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
)

// stored is a version of an object.
type stored struct {
	XMLName      xml.Name `xml:"Version"`
	Key          string
	VersionID    string `xml:"VersionId,omitempty"`
	IsLatest     bool
	ETag         string
	Size         int
	LastModified string
	data         []byte
}

// bucket is a store that speaks S3 with the faults that some stores have.
type bucket struct {
	*httptest.Server
	mu       sync.Mutex
	versions []stored // the newest of an object is its last one
	// ignores conditions, lists versions without ids, and lists nothing that a client of versions understands.
	ignores, anonymous, plain bool
	versioned                 bool // keeps the past versions of objects
	written                   int
	demands                   string // the header of encryption that each write needs
	key                       string // of the last request
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *bucket) environ() map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL": b.URL, "AWS_ACCESS_KEY_ID": "key-1", "AWS_SECRET_ACCESS_KEY": "secret-1", "AWS_REGION": "us-east-1"}
}

const prefix = "copies/shop/"

func (b *bucket) open(t *testing.T, o files.Options) *files.Destination {
	t.Helper()
	d, err := files.Bucket("lake", prefix, b.environ(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// objects are the newest versions without the probes.
func (b *bucket) objects(*testing.T) map[string][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string][]byte{}
	for _, v := range b.versions {
		if !strings.Contains(v.Key, ".probe.") {
			all[strings.TrimPrefix(v.Key, prefix)] = v.data
		}
	}
	return all
}

func (b *bucket) put(t *testing.T, name string, data []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.URL+"/lake/"+prefix+name, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
}

// newest returns the index of the newest version of a key; -1 without one.
func (b *bucket) newest(key string) int {
	at := -1
	for i, v := range b.versions {
		if v.Key == key {
			at = i
		}
	}
	return at
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fail := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `<Error><Code>%s</Code><Message>The store says no.</Message></Error>`, code)
	}
	b.key, _, _ = strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	at := b.newest(key)
	etag := ""
	if at >= 0 {
		etag = b.versions[at].ETag
	}
	switch query := r.URL.Query(); {
	case r.Method == http.MethodGet && key == "":
		b.list(w, query.Get("prefix"))
	case r.Method == http.MethodPut && b.demands != r.Header.Get("X-Amz-Server-Side-Encryption")+r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"):
		fail(http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPut:
		match, except := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
		if !b.ignores && (match != "" && strings.Trim(match, `"`) != strings.Trim(etag, `"`) || except == "*" && at >= 0) {
			fail(http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		data, err := content(r)
		if err != nil {
			fail(http.StatusBadRequest, err.Error())
			return
		}
		b.written++
		v := stored{Key: key, VersionID: fmt.Sprint("v", b.written), Size: len(data), ETag: fmt.Sprintf(`"%x"`, md5.Sum(data)), LastModified: "2022-01-01T00:00:00Z", data: data}
		if at >= 0 && !b.anonymous && !b.versioned {
			b.versions = slices.Delete(b.versions, at, at+1) // it keeps no versions
		}
		b.versions = append(b.versions, v)
		w.Header().Set("ETag", v.ETag)
	case at < 0 && r.Method != http.MethodDelete:
		fail(http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodDelete:
		b.versions = slices.DeleteFunc(b.versions, func(v stored) bool {
			return v.Key == key && (query.Get("versionId") == "" || query.Get("versionId") == v.VersionID)
		})
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.versions[at].data))
	}
}

// list answers a request for the versions of the objects below a prefix.
func (b *bucket) list(w http.ResponseWriter, prefix string) {
	var list []stored
	for i, v := range b.versions {
		if v.IsLatest = i == b.newest(v.Key); !strings.HasPrefix(v.Key, prefix) {
			continue
		}
		if b.anonymous {
			v.VersionID = ""
		}
		list = append(list, v)
	}
	answer := struct {
		XMLName  xml.Name
		Name     string
		Versions []stored
	}{xml.Name{Local: "ListVersionsResult"}, "lake", list}
	if b.plain {
		answer.XMLName.Local, answer.Versions = "ListBucketResult", nil
	}
	_ = xml.NewEncoder(w).Encode(answer)
}

// content returns the body of a request, even if the body is signed in chunks.
func content(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	in := bufio.NewReader(r.Body)
	var data []byte
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if n == 0 || err != nil {
			return data, err
		}
		chunk := make([]byte, n+2) // with the end of the line
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, err
		}
		data = append(data, chunk[:n]...)
	}
}

// TestProbe checks that a probe leaves nothing in the bucket, and finds a store that ignores conditions.
func TestProbe(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	if err := files.Probe(t.Context(), "lake", prefix, b.environ()); err != nil || len(b.versions) != 0 {
		t.Errorf("a sound store: %v, and %d versions are left", err, len(b.versions))
	}
	b.ignores = true
	if err := files.Probe(t.Context(), "lake", prefix, b.environ()); err == nil || !strings.Contains(err.Error(), "ignores the conditions of a write") || len(b.versions) != 0 {
		t.Errorf("a store that ignores conditions: %v, and %d versions are left", err, len(b.versions))
	}
}

// TestVariablesOfAWS checks the ways in which people give keys, addresses and encryption.
func TestVariablesOfAWS(t *testing.T) {
	t.Parallel()
	shared := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(shared, []byte("[shop]\naws_access_key_id = key-shop\naws_secret_access_key = secret-shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		demands string
		change  map[string]string
		key     string
		says    []string
	}{
		{"", nil, "key-1", nil},
		{"AES256", nil, "", []string{"LECTERN_S3_SSE", "HTTP 403, AccessDenied: The store says no."}},
		{"AES256", map[string]string{"LECTERN_S3_SSE": "AES256"}, "key-1", nil},
		{"aws:kms", map[string]string{"LECTERN_S3_SSE": "aws:kms"}, "key-1", nil},
		{"aws:kmsarn:aws:kms:k", map[string]string{"LECTERN_S3_SSE": "aws:kms:arn:aws:kms:k"}, "key-1", nil},
		{"", map[string]string{"LECTERN_S3_SSE": "kms"}, "", []string{"allowed: AES256, aws:kms, aws:kms:KEY"}},
		{"", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": "shop", "AWS_SHARED_CREDENTIALS_FILE": shared}, "key-shop", nil},
		{"", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": "shoe", "AWS_SHARED_CREDENTIALS_FILE": shared}, "", []string{`AWS_PROFILE was given as "shoe"`}},
		{"", map[string]string{"AWS_ENDPOINT_URL": "https://a.example.com/storage/v1/s3"}, "", []string{`"https://a.example.com/storage/v1/s3"`, "without a path"}},
	} {
		b := newBucket(t)
		b.demands = tt.demands
		environ := b.environ()
		maps.Copy(environ, tt.change)
		err := files.Probe(t.Context(), "lake", prefix, environ)
		if len(tt.says) == 0 && (err != nil || b.key != tt.key) {
			t.Errorf("%v: %v, by %s", tt, err, b.key)
		}
		for _, text := range tt.says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v: %v; want %s", tt, err, text)
			}
		}
	}
}

// A store that cannot keep the promises of a copy is refused by name before the first write of the copy, and nothing is
// lost.
func TestBucketsThatCannotHaveACopy(t *testing.T) {
	t.Parallel()
	s := copytest.NewSource(t)
	s.Fill(0, 30)
	for _, tt := range []struct {
		name  string
		fault func(*bucket)
		says  string
	}{
		{"no conditions", func(b *bucket) { b.ignores = true }, "ignores the conditions of a write (If-Match, If-None-Match)"},
		{"versions without ids", func(b *bucket) { b.anonymous = true }, "lists past versions of copies/shop/"},
		{"a listing of another form", func(b *bucket) { b.plain = true }, "does not list an object that it has"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBucket(t)
			run := func() error {
				_, err := s.Sync(t.Context(), copytest.Small(b.open(t, options(s.Is()))), nil)
				return err
			}
			refused := func() {
				t.Helper()
				before := b.objects(t)
				followers := make(chan error, 2)
				for range 2 {
					go func() { followers <- run() }()
				}
				for range 2 {
					if err := <-followers; err == nil || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("%v; want %q", err, tt.says)
					}
				}
				if diff := cmp.Diff(before, b.objects(t)); diff != "" {
					t.Errorf("-before +after: %.500s", diff)
				}
			}
			tt.fault(b)
			refused()
			b.ignores, b.anonymous, b.plain = false, false, false
			b.mu.Lock()
			b.versions = nil
			b.mu.Unlock()
			if err := run(); err != nil { // a sound store
				t.Fatal(err)
			}
			tt.fault(b)
			refused()
		})
	}
}

// TestBucketHasOneWriter checks that the process that opened the copy last has it: the process before cannot commit any
// more.
func TestBucketHasOneWriter(t *testing.T) {
	t.Parallel()
	s, b := copytest.NewSource(t), newBucket(t)
	first, second := b.open(t, options(s.Is())), b.open(t, options(s.Is()))
	at, err := first.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Cursor += "x"
	if err := first.Apply(t.Context(), &copies.Batch{Position: at}); err == nil || !strings.Contains(err.Error(), "another sync writes to bucket") {
		t.Errorf("the first: %v", err)
	}
}
