package credential

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secrets caches the values of the Secrets that hold the values of Credentials. It reads a Secret once, and again after
// a change or a failed read.
type secrets struct {
	client client.Client // reads Secrets from the API server

	mu   sync.Mutex
	held map[types.NamespacedName]*held
}

// held is the cached copy of one Secret that holds the value of a Credential.
type held struct {
	reading sync.Mutex // held by the goroutine that reads the Secret

	// Guarded by secrets.mu:
	fresh bool              // the Secret has not changed since it was read
	data  map[string][]byte // nil: there is no such Secret
}

// changed marks the cached copy of a Secret as out of date, and reports whether there is a cached copy.
func (s *secrets) changed(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[name]
	if h != nil {
		h.fresh = false
	}
	return h != nil
}

// values returns the values of a Secret by key, from the cached copy if the copy is up to date. The map is nil if there
// is no such Secret.
func (s *secrets) values(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	s.mu.Lock()
	h := s.held[name]
	if h == nil {
		h = &held{}
		s.held[name] = h
	}
	s.mu.Unlock()
	h.reading.Lock()
	defer h.reading.Unlock()
	s.mu.Lock()
	data, fresh := h.data, h.fresh
	h.fresh = true // a change during the read makes it false again
	s.mu.Unlock()
	if fresh {
		return data, nil
	}
	var secret corev1.Secret
	err := s.client.Get(ctx, name, &secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		h.data = nil
	case err != nil:
		h.fresh = false
		return nil, fmt.Errorf("read the Secret of a Credential: %w", err)
	default:
		h.data = secret.Data
		if h.data == nil {
			h.data = map[string][]byte{}
		}
	}
	return h.data, nil
}

// keep drops the cached copy of each Secret for which named returns false, because no Credential names the Secret any
// more.
func (s *secrets) keep(named func(types.NamespacedName) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.held {
		if !named(name) {
			delete(s.held, name)
		}
	}
}
