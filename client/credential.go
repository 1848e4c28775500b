package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// WithAPIKey sends key with each request, in the header X-Api-Key. Without an option for the key, the client sends no
// key.
func WithAPIKey(key string) Option {
	return WithAPIKeyFunc(func(context.Context) (string, error) { return key, nil })
}

// WithAPIKeyFunc sends the key that f returns, in the header X-Api-Key. The client calls f before each request, and
// again after a 401: if the key has changed, the client repeats the request once. The client retries an error of f
// like a broken connection. f must be safe for concurrent use.
func WithAPIKeyFunc(f func(context.Context) (string, error)) Option {
	return func(t *transport) { t.credential.key = f }
}

// WithAPIKeyFile sends the content of the file at path as the API key, without surrounding white space. The client
// reads the file before each request, so the key in the file may change at any time. See [WithAPIKeyFunc].
func WithAPIKeyFile(path string) Option {
	return WithAPIKeyFunc(func(context.Context) (string, error) { return readValue(path) })
}

// WithTokenFunc sends the token that f returns, a JWT, in the header Authorization (RFC 6750, section 2.1). The client
// calls f like the function of [WithAPIKeyFunc]. Options for both a key and a token are an error. The server accepts no
// token from an [Ingester] or an [Administrator].
func WithTokenFunc(f func(context.Context) (string, error)) Option {
	return func(t *transport) { t.credential.token = f }
}

// WithTokenFile sends the content of the file at path as the token, such as the projected token of a ServiceAccount. The
// client reads the file like that of [WithAPIKeyFile]. See [WithTokenFunc].
func WithTokenFile(path string) Option {
	return WithTokenFunc(func(context.Context) (string, error) { return readValue(path) })
}

// FromSecret returns a client, and the id of the project that its API key belongs to. dir is the folder at which a pod
// mounts the Secret of an APIKey object, with the files url, project-id and api-key. The client reads api-key before
// each request, so the client uses a rotated key. A missing or empty file is an error.
func FromSecret(dir string, options ...Option) (c *Client, projectID string, err error) {
	base, err := readValue(filepath.Join(dir, "url"))
	if err != nil {
		return nil, "", fmt.Errorf("the Secret has no URL: set spec.url of the APIKey, or the operator's PUBLIC_URL: %w", err)
	}
	if projectID, err = readValue(filepath.Join(dir, "project-id")); err != nil {
		return nil, "", err
	}
	key := filepath.Join(dir, "api-key")
	if _, err := readValue(key); err != nil {
		return nil, "", err
	}
	c, err = New(base, append([]Option{WithAPIKeyFile(key)}, options...)...)
	return c, projectID, err
}

// readValue returns the content of the file at path without surrounding white space. An empty file is an error.
func readValue(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(content))
	if value == "" {
		return "", fmt.Errorf("the file %s is empty", path)
	}
	return value, nil
}

// credentialError wraps an error of a function of a [credential]. The client retries a credentialError.
type credentialError struct{ error }

func (e credentialError) Unwrap() error { return e.error }

// credential holds the functions that return the API key or the token of a client. A field is nil without an option
// for it, and at most one field is not nil.
type credential struct {
	key, token func(context.Context) (string, error)
}

// read returns the key or the token for the next request, or "" if the client has no option for either. A value with
// other characters than printable ASCII is an error.
func (c credential) read(ctx context.Context) (string, error) {
	kind, read := "API key", c.key
	if c.token != nil {
		kind, read = "token", c.token
	}
	if read == nil {
		return "", nil
	}
	value, err := read(ctx)
	switch {
	case err != nil:
		return "", credentialError{fmt.Errorf("%s: %w", kind, err)}
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		// The message must not quote the value, as an error of net/http would.
		return "", errors.New(kind + ": want printable ASCII without spaces")
	}
	return value, nil
}

// set adds value, which read returned, to the header of a request. set adds nothing for "".
func (c credential) set(header http.Header, value string) {
	switch {
	case value == "":
	case c.token != nil:
		header.Set("Authorization", "Bearer "+value)
	default:
		header.Set("X-Api-Key", value)
	}
}
