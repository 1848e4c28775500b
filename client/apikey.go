package client

import (
	"context"
	"errors"
	"fmt"
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
	return func(t *transport) { t.apiKey = f }
}

// WithAPIKeyFile sends the content of the file at path as the API key, without surrounding white space. The client
// reads the file before each request, so the key in the file may change at any time. See [WithAPIKeyFunc].
func WithAPIKeyFile(path string) Option {
	return WithAPIKeyFunc(func(context.Context) (string, error) { return readValue(path) })
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

// keyError wraps an error of the function that returns the API key. The client retries a keyError.
type keyError struct{ cause error }

func (e *keyError) Error() string { return "API key: " + e.cause.Error() }
func (e *keyError) Unwrap() error { return e.cause }

// key returns the API key for the next request, or "" if the client has no option for the key. A key with other
// characters than printable ASCII is an error.
func (t *transport) key(ctx context.Context) (string, error) {
	if t.apiKey == nil {
		return "", nil
	}
	key, err := t.apiKey(ctx)
	switch {
	case err != nil:
		return "", &keyError{err}
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		// The message must not quote the key, as an error of net/http would.
		return "", errors.New("API key: want printable ASCII without spaces")
	}
	return key, nil
}
