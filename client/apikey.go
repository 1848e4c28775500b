package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WithAPIKey sends key as X-Api-Key.
func WithAPIKey(key string) Option {
	return WithAPIKeyFunc(func(context.Context) (string, error) { return key, nil })
}

// WithAPIKeyFunc sends the key that f returns. The client calls f before each request, and again after a 401: if the key
// has changed, it repeats the request once. An error of f is retried like a connection that breaks. f must be safe for
// concurrent use.
func WithAPIKeyFunc(f func(context.Context) (string, error)) Option {
	return func(t *transport) { t.apiKey = f }
}

// WithAPIKeyFile sends the content of the file at path, without surrounding white space. The client reads the file before
// each request, so that a key may be rotated. See [WithAPIKeyFunc].
func WithAPIKeyFile(path string) Option {
	return WithAPIKeyFunc(func(context.Context) (string, error) { return readValue(path) })
}

// FromSecret returns a client, and the id of the project that its key reads. dir is the folder at which a pod mounts the
// Secret of an APIKey object: its files url, project-id and api-key have these values. The client follows rotations of the
// key.
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

// readValue returns the content of a file without surrounding white space.
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

// keyError marks an error of the function that returns the key.
type keyError struct{ cause error }

func (e *keyError) Error() string { return "API key: " + e.cause.Error() }
func (e *keyError) Unwrap() error { return e.cause }

// key returns the key of the next request, or "" for none.
func (t *transport) key(ctx context.Context) (string, error) {
	if t.apiKey == nil {
		return "", nil
	}
	key, err := t.apiKey(ctx)
	switch {
	case err != nil:
		return "", &keyError{err}
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		// net/http's error would quote the key.
		return "", errors.New("API key: want printable ASCII without spaces")
	}
	return key, nil
}
