package proxysource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/proxy/manifest"
)

const (
	// readers is how many Secrets are read at a time.
	readers = 16
	// readWithin is how long one may take.
	readWithin = 10 * time.Second
	// readAtLeast is how often one that cannot be read is tried again at the least.
	readAtLeast = 5 * time.Second
)

// vault holds the values that Credentials refer to, and nothing else of Secrets. What it drops it overwrites.
type vault struct {
	ask    func(context.Context, types.NamespacedName) (*corev1.Secret, error)
	change func() // is called when values are others
	news   func() // is called when a Secret cannot be read, or can again
	rest   func() // is called when what settled returns may be another

	slots   chan struct{}
	reading sync.WaitGroup

	mu      sync.Mutex
	secrets map[types.NamespacedName]*kept
}

// kept is a Secret that Credentials refer to.
type kept struct {
	keys     []string          // that they refer to
	data     map[string][]byte // of those keys; nil: there is no such Secret, or nobody knows
	uid      types.UID         // of the Secret that was read last
	revision string            // its resourceVersion
	answered bool              // the API server said once what is so
	err      error             // why it cannot be read
	stale    bool              // it is to be read
	gone     bool              // the API server told that it was deleted
	reading  bool              // somebody reads it
	dropped  bool              // nobody refers to it any more
	wake     chan struct{}     // ends the pause of who reads it
}

func newVault(ask func(context.Context, types.NamespacedName) (*corev1.Secret, error), change, news, rest func()) *vault {
	return &vault{ask: ask, change: change, news: news, rest: rest, slots: make(chan struct{}, readers), secrets: map[types.NamespacedName]*kept{}}
}

// want says which keys of which Secrets are referred to. What is new is read, what is not wanted dropped.
func (v *vault) want(ctx context.Context, wanted map[types.NamespacedName][]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, k := range v.secrets {
		if wanted[key] == nil {
			k.drop()
			delete(v.secrets, key)
		}
	}
	for key, keys := range wanted {
		k := v.secrets[key]
		if k == nil {
			k = &kept{stale: true, wake: make(chan struct{}, 1)}
			v.secrets[key] = k
		}
		for _, name := range keys {
			k.stale = k.stale || !slices.Contains(k.keys, name)
		}
		k.keys = keys
		for name, value := range k.data {
			if !slices.Contains(keys, name) {
				clear(value)
				delete(k.data, name)
			}
		}
		v.start(ctx, key, k)
	}
}

// told takes what the API server told of a Secret: its version, or "" when it was deleted.
func (v *vault) told(ctx context.Context, key types.NamespacedName, uid types.UID, revision string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.secrets[key]
	if k == nil || k.uid == uid && k.revision == revision && !k.stale {
		return
	}
	if revision != "" {
		k.stale, k.gone = true, false
		v.start(ctx, key, k)
		return
	}
	if k.uid != "" && k.uid != uid {
		return // an earlier Secret of that name
	}
	k.wipe()
	k.gone, k.answered = true, true
	k.stale = k.reading // whoever reads it may be holding what it was before
	v.change()
}

// listed takes the versions of all Secrets of a namespace, "" for all namespaces.
func (v *vault) listed(ctx context.Context, namespace string, all map[types.NamespacedName]version) {
	for _, key := range v.keys() {
		if namespace != "" && namespace != key.Namespace {
			continue
		}
		is, there := all[key]
		if !there {
			v.mu.Lock()
			if k := v.secrets[key]; k != nil {
				is.uid = k.uid
			}
			v.mu.Unlock()
		}
		v.told(ctx, key, is.uid, is.revision)
	}
}

func (v *vault) keys() []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys := make([]types.NamespacedName, 0, len(v.secrets))
	for key := range v.secrets {
		keys = append(keys, key)
	}
	return keys
}

// start has a Secret read, if it is to be and nobody does. The vault is locked.
func (v *vault) start(ctx context.Context, key types.NamespacedName, k *kept) {
	switch {
	case !k.stale || ctx.Err() != nil:
	case k.reading:
		select {
		case k.wake <- struct{}{}:
		default:
		}
	default:
		k.reading = true
		v.reading.Go(func() { v.pursue(ctx, key, k) })
	}
}

// pursue reads a Secret until it is known as it is.
func (v *vault) pursue(ctx context.Context, key types.NamespacedName, k *kept) {
	pause := retryAfter
	for {
		v.mu.Lock()
		if !k.stale || k.dropped || ctx.Err() != nil {
			k.reading = false
			v.mu.Unlock()
			v.rest()
			return
		}
		k.stale = false
		v.mu.Unlock()

		s, err := v.read(ctx, key)
		if !v.take(ctx, k, s, err) {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, readAtLeast)
	}
}

func (v *vault) read(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	select {
	case v.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.slots }()
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return v.ask(ctx, key)
}

// take notes what came of reading a Secret. It is true when that failed and is to be tried again.
func (v *vault) take(ctx context.Context, k *kept, s *corev1.Secret, err error) (again bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s != nil {
		defer wipe(s.Data)
	}
	if k.dropped || ctx.Err() != nil {
		return false
	}
	failed := k.err != nil
	changed := !k.answered
	switch {
	case err == nil && k.gone:
		// It was deleted while it was read; stale is set, and it is read again.
	case err == nil:
		changed = k.keep(s) || changed
		k.answered, k.err = true, nil
	case apierrors.IsNotFound(err):
		changed = changed || k.data != nil
		k.wipe()
		k.answered, k.err = true, nil
	default:
		k.stale = true
		k.answered = k.answered || refused(err)
		k.err = err
	}
	if changed {
		v.change()
	}
	if failed != (k.err != nil) {
		v.news()
		v.rest()
	}
	return k.err != nil
}

// refused reports whether the API server answered, so that asking again at once will hardly help.
func refused(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err)
}

// keep takes the values that are referred to. It is false when they are those that are known.
func (k *kept) keep(s *corev1.Secret) (changed bool) {
	changed = k.data == nil
	if changed {
		k.data = map[string][]byte{}
	}
	k.uid, k.revision = s.UID, s.ResourceVersion
	for _, name := range k.keys {
		value, there := s.Data[name]
		old, known := k.data[name]
		if there == known && bytes.Equal(value, old) {
			continue
		}
		changed = true
		clear(old)
		delete(k.data, name)
		if there {
			k.data[name] = bytes.Clone(value)
		}
	}
	return changed
}

func (k *kept) wipe() {
	wipe(k.data)
	k.data, k.uid, k.revision = nil, "", ""
}

func (k *kept) drop() {
	k.wipe()
	k.dropped = true
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func wipe(data map[string][]byte) {
	for _, value := range data {
		clear(value)
	}
}

// settled reports whether nothing more is to be expected soon; answered, whether the API server said of every
// Secret what is so, or that it will not say.
func (v *vault) settled() (settled, answered bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	settled, answered = true, true
	for _, k := range v.secrets {
		settled = settled && (k.err != nil || !k.stale && !k.reading)
		answered = answered && k.answered
	}
	return settled, answered
}

// copies returns the Secrets with copies of the values that are referred to, and why some are not known.
func (v *vault) copies() (secrets []manifest.Secret, unknown map[types.NamespacedName]error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, k := range v.secrets {
		switch {
		case k.data != nil:
			s := manifest.Secret{Metadata: manifest.Metadata{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{}}
			for name, value := range k.data {
				s.Data[name] = bytes.Clone(value)
			}
			secrets = append(secrets, s)
		case k.err != nil || !k.answered:
			if unknown == nil {
				unknown = map[types.NamespacedName]error{}
			}
			unknown[key] = k.err
		}
	}
	return secrets, unknown
}

// failing says which Secret cannot be read, and why; nil when all can.
func (v *vault) failing() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var first types.NamespacedName
	var err error
	count := 0
	for key, k := range v.secrets {
		if k.err == nil {
			continue
		}
		if count++; err == nil || key.String() < first.String() {
			first, err = key, k.err
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("the Secret %s, of %d that cannot be read: %w", first, count, err)
}

// close waits for those who read, whose context has ended, and overwrites all values.
func (v *vault) close() {
	v.reading.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, k := range v.secrets {
		k.drop()
		delete(v.secrets, key)
	}
}
