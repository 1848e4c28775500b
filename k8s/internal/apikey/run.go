package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/frame"
	"github.com/lectern-dev/lectern/k8s/internal/grant"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

// run is one reconcile of one object.
type run struct {
	*reconciler
	object  *v1alpha1.APIKey
	live    *corev1.Secret // as it was read; nil: there was none
	state   state
	known   bool // all was read
	written bool // the Secret was, so that live is of before
}

// fault is why a step failed, for people and for the log.
type fault struct {
	reason  string // of the condition Ready
	message string
	err     error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// keysFault judges an error of the keys' database.
func keysFault(err error) error {
	return &fault{v1alpha1.ReasonDatabaseUnavailable, "The database of the keys cannot be used now. The operator retries.", err}
}

// secretFault judges an error of writing the Secret. What a webhook said of the Secret is not repeated.
func secretFault(err error) error {
	why := string(apierrors.ReasonForError(err))
	if why == "" {
		why = "no answer"
	}
	return &fault{v1alpha1.ReasonSecretRefused, "The Secret cannot be written (" + why + "). The operator retries.", err}
}

// errAgain asks for another look: what was read is not so any more.
var errAgain = errors.New("what was read has changed meanwhile")

// read reads all that the next step depends on.
func (r *run) read(ctx context.Context) error {
	r.known = false
	r.state = state{
		deleting: !r.object.DeletionTimestamp.IsZero(),
		held:     controllerutil.ContainsFinalizer(r.object, v1alpha1.FinalizerAPIKey),
	}
	if r.state.deleting && !r.state.held {
		return nil
	}
	w, err := wantOf(r.object)
	if err != nil && !r.state.deleting { // what cannot be read can still be ended
		return &fault{v1alpha1.ReasonInvalid, err.Error(), err}
	}
	r.state.want = w
	// The keys first: of what another operator does in between, the Secret is seen and the key is not, and then
	// the number of the key that would be minted is taken.
	if r.state.keys, r.state.last, err = r.Keys.Owned(ctx, w.project, ownerOf(r.Realm, r.object)); err != nil {
		return keysFault(err)
	}
	if r.state.deleting {
		return nil
	}
	if r.state.project, err = r.decide(ctx); err != nil {
		return err
	}
	if r.live, err = r.liveSecret(ctx, r.object); err != nil {
		return err
	}
	r.state.secret = judge(r.live, r.object, r.contentsOf(r.object))
	r.known = true
	return nil
}

// decide says whether the object's namespace may have keys of the project. The cache may be old, which is no reason
// to revoke a key: before that, the API server is asked.
func (r *run) decide(ctx context.Context) (grant.Decision, error) {
	ask := func(reader client.Reader, namespaces ...string) (grant.Decision, error) {
		declaring, err := grant.Declaring(ctx, reader, r.state.want.project, namespaces...)
		decision := grant.Decide(r.object.Namespace, declaring)
		if decision == grant.Undeclared && r.AllowUndeclared {
			decision = grant.Allowed
		}
		return decision, err
	}
	decision, err := ask(r.Client)
	if err != nil || decision == grant.Allowed || len(r.state.keys) == 0 {
		return decision, err
	}
	return ask(r.Reader, r.Namespaces...)
}

// do does one step, and puts what it gave into the state.
func (r *run) do(ctx context.Context, s step) error {
	switch s.do {
	case hold:
		return r.setFinalizer(ctx, true)
	case release:
		return r.setFinalizer(ctx, false)
	case mint:
		return r.mint(ctx, s.why)
	case tidy:
		return r.tidy(ctx, s.key)
	case deliver:
		k, err := r.Keys.Deliver(ctx, s.key.ProjectID, s.key.ID)
		if err != nil {
			return r.gone(err)
		}
		r.replace(k)
	case amend:
		record, err := r.Keys.Amend(ctx, s.key.ProjectID, s.key.ID, s.terms)
		if err != nil {
			return r.gone(err)
		}
		r.log(ctx, "gave a key other terms", s.key, slog.String("scopes", record.Scopes.String()), slog.Int("rate", record.Rate), slog.Time("expires_at", record.ExpiresAt))
		r.tell("Amended", "Key %s has other terms.", s.key.ID)
		k := s.key
		owner := k.Owner
		k.Record = record
		k.Owner = owner
		r.replace(k)
	case end:
		record, err := r.Keys.Expire(ctx, s.key.ProjectID, s.key.ID, s.at)
		if err != nil {
			return r.gone(err)
		}
		r.log(ctx, "gave a key an end", s.key, slog.Time("expires_at", record.ExpiresAt))
		k := s.key
		k.ExpiresAt, k.Ended = record.ExpiresAt, true
		r.replace(k)
		if !record.Active(r.Now()) {
			r.drop(k.ID)
		}
	case revoke:
		if _, err := r.Keys.Revoke(ctx, s.key.ProjectID, s.key.ID); err != nil && !errors.Is(err, pgkeys.ErrNotFound) {
			return keysFault(err)
		}
		r.drop(s.key.ID)
		r.meters.revoked(ctx, s.why)
		r.log(ctx, "revoked a key", s.key, slog.String("cause", string(s.why)))
		r.tell("Revoked", "Key %s is revoked: %s.", s.key.ID, revokedBecause(s.why))
	}
	return nil
}

func revokedBecause(why cause) string {
	switch why {
	case undelivered:
		return "it was minted and never put into the Secret"
	case leaked:
		return v1alpha1.AnnotationRevokeKeys + " names it"
	case notGranted:
		return "the project belongs to another namespace, which does not allow this one"
	}
	return "the object is being deleted"
}

// gone judges an error of changing a key: one that is not there any more asks for another look.
func (r *run) gone(err error) error {
	if errors.Is(err, pgkeys.ErrNotFound) {
		return errAgain
	}
	return keysFault(err)
}

func (r *run) replace(k pgkeys.Owned) {
	for i := range r.state.keys {
		if r.state.keys[i].ID == k.ID {
			r.state.keys[i] = k
		}
	}
}

func (r *run) drop(id string) {
	r.state.keys = slices.DeleteFunc(r.state.keys, func(k pgkeys.Owned) bool { return k.ID == id })
}

// setFinalizer adds or removes the finalizer, on the object as it was read and no other.
func (r *run) setFinalizer(ctx context.Context, on bool) error {
	before := r.object.DeepCopy()
	if on {
		controllerutil.AddFinalizer(r.object, v1alpha1.FinalizerAPIKey)
	} else {
		controllerutil.RemoveFinalizer(r.object, v1alpha1.FinalizerAPIKey)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, r.object, patch, frame.FieldOwner)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return errAgain
	case err != nil:
		return fmt.Errorf("set the finalizer: %w", err)
	}
	r.state.held = on
	return nil
}

// mint mints a key and puts it into the Secret. Whether the Secret can be written is tried first, so that where
// it cannot, no key is minted at each retry.
func (r *run) mint(ctx context.Context, why cause) error {
	if r.written {
		return errAgain
	}
	c := r.contentsOf(r.object)
	trial, _ := auth.Mint()
	c.key, c.keyID = trial, auth.NewKeyID()
	if err := r.write(ctx, r.object, r.live, c, client.DryRunAll); err != nil {
		return secretFault(err)
	}
	// From the key's birth on: who finds the key in the database waits for Settle before they take it for lost.
	ctx, cancel := context.WithTimeout(ctx, r.Settle/2)
	defer cancel()
	key, k, err := r.Keys.MintOwned(ctx, pgkeys.OwnedOptions{
		MintOptions: pgkeys.MintOptions{
			ProjectID: r.state.want.project, Name: r.state.want.terms.Name, Scopes: r.state.want.terms.Scopes,
			Rate: r.state.want.terms.Rate, ExpiresAt: r.state.want.terms.ExpiresAt,
		},
		Owner:   ownerOf(r.Realm, r.object),
		Number:  r.state.last + 1,
		Request: r.state.want.request,
	})
	switch {
	case errors.Is(err, pgkeys.ErrOvertaken):
		return errAgain
	case err != nil:
		return keysFault(err)
	}
	r.state.last = k.Number
	r.state.keys = append(r.state.keys, k)
	r.meters.minted(ctx, why)
	c.key, c.keyID = key, k.ID
	if err := r.write(ctx, r.object, r.live, c); err != nil {
		return secretFault(err)
	}
	r.written = true
	r.state.secret = secret{exists: true, ours: true, holds: []auth.Hash{k.Hash}, keyID: k.ID, tidy: true}
	r.log(ctx, "minted a key", k, slog.String("cause", string(why)), slog.String("secret", c.name))
	reason := "Rotated"
	if why == first {
		reason = "Minted"
	}
	r.tell(reason, "Key %s is in the Secret %s: %s.", k.ID, c.name, mintedBecause(why))
	return nil
}

func mintedBecause(why cause) string {
	switch why {
	case scheduled:
		return "the time of the one before has come"
	case asked:
		return v1alpha1.AnnotationRotate + " asked for it"
	case leaked:
		return v1alpha1.AnnotationRevokeKeys + " names the one before"
	case secretGone:
		return "the Secret was deleted"
	case secretEdited:
		return "the Secret held no key that works"
	case endedOutside:
		return "the one before was given an end outside Kubernetes"
	}
	return "it is the first"
}

// tidy writes the Secret anew with the key that it holds.
func (r *run) tidy(ctx context.Context, k pgkeys.Owned) error {
	if r.written || r.live == nil {
		return errAgain
	}
	c := r.contentsOf(r.object)
	text, ok := textOf(r.live, k.Hash)
	if !ok {
		return errAgain
	}
	c.key, c.keyID = text, k.ID
	if err := r.write(ctx, r.object, r.live, c); err != nil {
		return secretFault(err)
	}
	r.written = true
	r.state.secret = secret{exists: true, ours: true, holds: []auth.Hash{k.Hash}, keyID: k.ID, tidy: true}
	r.log(ctx, "put the Secret right", k, slog.String("secret", c.name))
	r.tell("SecretRestored", "The Secret %s is as it is to be again; its key stays.", c.name)
	return nil
}

func (r *run) log(ctx context.Context, what string, k pgkeys.Owned, more ...slog.Attr) {
	attrs := append([]slog.Attr{
		slog.String("namespace", r.object.Namespace), slog.String("name", r.object.Name), slog.String("key_id", k.ID),
	}, more...)
	r.Log.LogAttrs(ctx, slog.LevelInfo, what, attrs...)
}

// tell makes an event of what was done.
func (r *run) tell(reason, note string, args ...any) {
	r.events.Eventf(r.object, nil, corev1.EventTypeNormal, reason, "Reconcile", note, args...)
}

// overdue tells how long ago the deletion's keys were to be revoked; negative: there is time left.
func (r *run) overdue(now time.Time) time.Duration {
	return now.Sub(r.object.DeletionTimestamp.Time) - r.RevokeWithin
}
