package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/lectern-dev/lectern/client"
)

// APIFlags are the flags of a command that calls the API for one project: the address, the key, and the project's id.
type APIFlags struct {
	ServerFlags
	Project string `short:"p" env:"LECTERN_PROJECT_ID" required:"" help:"The project's id." placeholder:"ID"`
}

// ServerFlags are the address of the API and a credential: a key, or a file that contains a key or a token. AfterApply
// sets Token, which returns the token of the file or of a login; nil for none.
type ServerFlags struct {
	URL        string                                `name:"url" type:"url" env:"LECTERN_URL" default:"http://127.0.0.1:8080" help:"The address of the API. Default: ${default}." placeholder:"URL"`
	APIKey     string                                `env:"LECTERN_API_KEY" help:"An API key of the project. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`
	APIKeyFile string                                `name:"api-key-file" env:"LECTERN_API_KEY_FILE" type:"path" help:"A file with the key, which is read before each request: the key may be rotated." placeholder:"FILE"`
	TokenFile  string                                `env:"LECTERN_TOKEN_FILE" type:"path" help:"A file with a token in place of a key, such as that of a pod. It is read before each request." placeholder:"FILE"`
	Token      func(context.Context) (string, error) `kong:"-"`
}

// Client returns a client that writes each failed attempt to notes before it tries again, and then calls retry.Notify
// unless it is nil. Client returns a usage error if there is no credential.
func (f ServerFlags) Client(retry client.Retry, notes io.Writer) (*client.Client, error) {
	if f.APIKey == "" && f.APIKeyFile == "" && f.Token == nil {
		return nil, Usagef("no API key: run lectern login, set LECTERN_API_KEY, LECTERN_API_KEY_FILE or LECTERN_TOKEN_FILE, or give --env-file")
	}
	return f.KeylessClient(retry, notes)
}

// KeylessClient returns a client for operations that may need no key. The client sends a key or a token if there is one,
// and writes failed attempts to notes. The errors are those of [ServerFlags.Credential].
func (f ServerFlags) KeylessClient(retry client.Retry, notes io.Writer) (*client.Client, error) {
	say, also := Notifier(notes), retry.Notify
	retry.Notify = func(err error, wait time.Duration) {
		say(err, wait)
		if also != nil {
			also(err, wait)
		}
	}
	if _, _, err := f.Credential(); err != nil { // the client would retry
		return nil, err
	}
	credential := client.WithAPIKey(f.APIKey)
	switch {
	case f.Token != nil:
		credential = client.WithTokenFunc(f.Token)
	case f.APIKeyFile != "":
		credential = client.WithAPIKeyFile(f.APIKeyFile)
	}
	// Answers come in zstd, which takes less processor time than gzip on both sides.
	zstd := client.WithTransport(func(t http.RoundTripper) http.RoundTripper { return gzhttp.Transport(neverEmpty{t}) })
	c, err := client.New(f.URL, credential, zstd, client.WithUserAgent("lectern-cli"), client.WithRetry(retry))
	if err != nil {
		return nil, usageError{fmt.Errorf("--url: %w", err)}
	}
	return c, nil
}

// AfterApply refuses several credentials that come from one source, such as two flags. See [credentials] for several
// sources. Without any, the login of the context applies. kong calls AfterApply after it set the flags.
func (f *ServerFlags) AfterApply(s *Session) error {
	given := slices.DeleteFunc([]string{f.APIKey, f.APIKeyFile, f.TokenFile}, func(value string) bool { return value == "" })
	switch {
	case len(given) > 1:
		return Usagef("%d credentials were given; allowed: one of --api-key or LECTERN_API_KEY, --api-key-file or LECTERN_API_KEY_FILE, and --token-file or LECTERN_TOKEN_FILE", len(given))
	case f.TokenFile != "":
		f.Token = func(context.Context) (string, error) { return readCredential("--token-file", f.TokenFile) }
	case len(given) == 0:
		f.Token = s.token
	}
	return nil
}

// Key returns the key, from the key file if there is one. Key returns "" if neither flag is set, and a usage error
// for a file that is empty or cannot be read.
func (f ServerFlags) Key() (string, error) {
	if f.APIKeyFile == "" {
		return f.APIKey, nil
	}
	return readCredential("--api-key-file", f.APIKeyFile)
}

// Credential returns the header that carries the key or the token, and its value, or "" for none. A file that is empty
// or cannot be read is a usage error. A login that cannot be renewed is an error.
func (f ServerFlags) Credential() (header, value string, err error) {
	if f.Token == nil {
		value, err = f.Key()
		return "X-Api-Key", value, err
	}
	value, err = f.Token(context.Background())
	return "Authorization", "Bearer " + value, err
}

// readCredential returns the content of the file that a flag names, without surrounding white space.
func readCredential(flag, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	value := strings.TrimSpace(string(content))
	if value == "" {
		return "", Usagef("%s: the file %s is empty", flag, path)
	}
	return value, nil
}

// Notifier returns a function for the field Notify of [client.Retry]. The function writes the error of a failed
// attempt, and the wait before the next attempt, as a line to notes.
func Notifier(notes io.Writer) func(error, time.Duration) {
	return func(err error, wait time.Duration) {
		fmt.Fprintf(notes, "lectern: %s; trying again in %v\n", OneLine(err), wait.Round(100*time.Millisecond))
	}
}

// Interactive returns the retries of a command that a user waits for: at most 4 attempts, and no wait of more than 10
// seconds. If the server asks for a longer wait, the request fails at once.
func Interactive() client.Retry {
	return client.Retry{Attempts: 4, Longest: 10 * time.Second}
}

// Patient returns the retries of a long command: at most attempts attempts in all, with the default waits of the
// client.
func Patient(attempts int) client.Retry {
	return client.Retry{Attempts: attempts}
}

// neverEmpty is a transport that reports an error for a compressed body that ends before its first byte. The decoder
// maps io.ErrUnexpectedEOF to io.EOF, so without neverEmpty the caller would read an empty body without an error.
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
