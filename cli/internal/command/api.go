package command

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/lectern-dev/lectern/client"
)

// apiFlags select the API and a project of it.
type apiFlags struct {
	serverFlags
	Project string `short:"p" env:"LECTERN_PROJECT_ID" required:"" help:"The project's id." placeholder:"ID"`
}

// serverFlags select the API and a key.
type serverFlags struct {
	URL        string `name:"url" type:"url" env:"LECTERN_URL" default:"http://127.0.0.1:8080" help:"The address of the API. Default: ${default}." placeholder:"URL"`
	APIKey     string `env:"LECTERN_API_KEY" help:"An API key of the project. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`
	APIKeyFile string `name:"api-key-file" env:"LECTERN_API_KEY_FILE" type:"path" help:"A file with the key, which is read before each request: the key may be rotated." placeholder:"FILE"`
}

// client returns a client that writes about its waits to notes, and calls retry.Notify too if it is set.
func (f serverFlags) client(retry client.Retry, notes io.Writer) (*client.Client, error) {
	if f.APIKey == "" && f.APIKeyFile == "" {
		return nil, usagef("no API key: run lectern login, set LECTERN_API_KEY or LECTERN_API_KEY_FILE, or give --env-file")
	}
	return f.keylessClient(retry, notes)
}

// keylessClient returns a client for operations that may need no key. It sends the key if there is one.
func (f serverFlags) keylessClient(retry client.Retry, notes io.Writer) (*client.Client, error) {
	say, also := notifier(notes), retry.Notify
	retry.Notify = func(err error, wait time.Duration) {
		say(err, wait)
		if also != nil {
			also(err, wait)
		}
	}
	if _, err := f.key(); err != nil { // the client would retry
		return nil, err
	}
	key := client.WithAPIKey(f.APIKey)
	if f.APIKeyFile != "" {
		key = client.WithAPIKeyFile(f.APIKeyFile)
	}
	// Answers come in zstd, which takes less processor time than gzip on both sides.
	zstd := client.WithTransport(func(t http.RoundTripper) http.RoundTripper { return gzhttp.Transport(neverEmpty{t}) })
	c, err := client.New(f.URL, key, zstd, client.WithUserAgent("lectern-cli"), client.WithRetry(retry))
	if err != nil {
		return nil, usageError{fmt.Errorf("--url: %w", err)}
	}
	return c, nil
}

// AfterApply refuses two keys from one source. See [alternatives] for two sources.
func (f serverFlags) AfterApply() error {
	if f.APIKey != "" && f.APIKeyFile != "" {
		return usagef("both a key and a file with a key were given; allowed: one of --api-key or LECTERN_API_KEY, and --api-key-file or LECTERN_API_KEY_FILE")
	}
	return nil
}

// key returns the key, or "" if there is none.
func (f serverFlags) key() (string, error) {
	if f.APIKeyFile == "" {
		return f.APIKey, nil
	}
	content, err := os.ReadFile(f.APIKeyFile)
	if err != nil {
		return "", usageError{fmt.Errorf("--api-key-file: %w", err)}
	}
	key := strings.TrimSpace(string(content))
	if key == "" {
		return "", usagef("--api-key-file: the file %s is empty", f.APIKeyFile)
	}
	return key, nil
}

func notifier(notes io.Writer) func(error, time.Duration) {
	return func(err error, wait time.Duration) {
		fmt.Fprintf(notes, "lectern: %s; trying again in %v\n", oneLine(err), wait.Round(100*time.Millisecond))
	}
}

// interactive bounds the retries of a command that a user waits for.
func interactive() client.Retry {
	return client.Retry{Attempts: 4, Longest: 10 * time.Second}
}

// patient bounds the retries of a long command.
func patient(attempts int) client.Retry {
	return client.Retry{Attempts: attempts}
}

// filterFlags select entries by update time and ids.
type filterFlags struct {
	Direction     string `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is oldest first, DESC newest first, which is the default." placeholder:"ASC|DESC"`
	UpdatedAfter  moment `help:"Only entries updated after this time: RFC 3339, or a date." placeholder:"TIME"`
	UpdatedBefore moment `help:"Only entries updated before this time." placeholder:"TIME"`
	EmbeddableID  string `name:"embeddable-id" help:"Only entries of this embeddable." placeholder:"ID"`
	ContactID     string `name:"contact-id" help:"Only entries of this contact." placeholder:"ID"`
	GroupID       string `name:"group-id" help:"Only entries of this group." placeholder:"ID"`
	Completed     string `enum:"true,false," default:"" help:"Only entries with a page view of their last page (true), or only the others (false)." placeholder:"true|false"`
}

// completed returns the value of the flag, or nil if it was not given.
func (f filterFlags) completed() *bool {
	if f.Completed == "" {
		return nil
	}
	is := f.Completed == "true"
	return &is
}

func (f filterFlags) direction() client.Direction {
	return client.Direction(strings.ToUpper(f.Direction))
}

// statusFlags select experiments.
type statusFlags struct {
	Status string `enum:"draft,running,paused,winner_picked,completed,discarded," default:"" help:"Only experiments with this status: draft, running, paused, winner_picked, completed or discarded." placeholder:"STATUS"`
}

func (f statusFlags) query() client.ExperimentQuery {
	return client.ExperimentQuery{Status: client.ExperimentStatus(f.Status)}
}

type entryFilterFlags struct {
	filterFlags
	CreatedAfter  moment `help:"Only entries created after this time." placeholder:"TIME"`
	CreatedBefore moment `help:"Only entries created before this time." placeholder:"TIME"`
	Sort          string `enum:"updated_at,created_at," default:"" help:"updated_at, which is the default, or created_at." placeholder:"KEY"`
}

func (f entryFilterFlags) query() client.EntryQuery {
	return client.EntryQuery{
		Sort: client.Sort(f.Sort), Direction: f.direction(),
		CreatedAfter: f.CreatedAfter.Time, CreatedBefore: f.CreatedBefore.Time,
		UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		EmbeddableID: f.EmbeddableID, ContactID: f.ContactID, GroupID: f.GroupID, Completed: f.completed(),
	}
}

type pageViewFilterFlags struct {
	filterFlags
	IncludeURLs bool `name:"include-urls" help:"With the URL of each page view."`
}

func (f pageViewFilterFlags) query() client.PageViewQuery {
	return client.PageViewQuery{
		Direction: f.direction(), UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		EmbeddableID: f.EmbeddableID, ContactID: f.ContactID, GroupID: f.GroupID, Completed: f.completed(),
		IncludeURLs: f.IncludeURLs,
	}
}

// neverEmpty makes an error of a compressed body that ends before its first byte. The decoder would take it for an empty
// one, as it maps io.ErrUnexpectedEOF to io.EOF there.
type neverEmpty struct{ http.RoundTripper }

func (t neverEmpty) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && resp.Header.Get("Content-Encoding") != "" {
		resp.Body = &compressed{ReadCloser: resp.Body}
	}
	return resp, err
}

type compressed struct {
	io.ReadCloser
	begun bool
}

func (b *compressed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.begun = b.begun || n > 0
	if !b.begun && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = errors.New("the compressed body ended before its first byte")
	}
	return n, err
}
