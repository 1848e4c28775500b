package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/metawatch"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

// run is one reconcile of one APIKey, with the state that the reconcile has read.
type run struct {
	*reconciler
	object  *v1alpha1.APIKey
	live    *corev1.Secret // as read; nil if there was none
	state   state
	known   bool // everything was read
	written bool // this run wrote the Secret, so live is out of date
}

// fault is the failure of a read or of a step, with the reason and the message of the condition.
type fault struct {
	reason  string // for the condition Ready
	message string
	err     error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// keysFault returns the fault DatabaseUnavailable for an error of the key database.
func keysFault(err error) error {
	return &fault{v1alpha1.ReasonDatabaseUnavailable, "The database of the keys cannot be used now. The operator retries.", err}
}

// secretFault returns the fault SecretRefused for a failed write of the Secret. The fault's message leaves out the text
// of a webhook, which may quote the Secret.
func secretFault(err error) error {
	why := string(apierrors.ReasonForError(err))
	if why == "" {
		why = "no answer"
	}
	return &fault{v1alpha1.ReasonSecretRefused, "The Secret cannot be written (" + why + "). The operator retries.", err}
}

// errAgain means that the state that a run has read is out of date. The operator reconciles the object again after
// requeueDelay.
var errAgain = errors.New("the object, its Secret or its keys changed during the reconcile")

// read sets r.state from the object, the key database, the Projects and the Secret. It returns a [fault] if the spec is
// invalid, the database cannot be used or the operator may not read the Secret. Of an object that is being deleted, it
// reads the keys at most.
func (r *run) read(ctx context.Context) error {
	r.known = false
	r.state = state{deleting: !r.object.DeletionTimestamp.IsZero()}
	w, err := wantOf(r.object, r.ClusterIssuer)
	if err != nil && !r.state.deleting { // an invalid object can still be deleted
		return &fault{v1alpha1.ReasonInvalid, err.Error(), err}
	}
	r.state.want = w
	// Read the keys before the Secret. If another operator rotates in between, this run sees its Secret but not its
	// key. Minting then fails, because the number of the new key is taken.
	if r.state.keys, r.state.last, err = r.Keys.Owned(ctx, w.project, ownerOf(r.Realm, r.object)); err != nil {
		return keysFault(err)
	}
	if r.state.deleting {
		r.known = true
		return nil
	}
	if r.state.project, err = r.decide(ctx); err != nil {
		return err
	}
	if !w.identity.IsZero() {
		if err := r.readAccount(ctx); err != nil {
			return err
		}
		if r.state.secret = identitySecret(r.state.want.identity); r.state.want.noAccount() {
			r.state.secret = secret{}
		}
		r.known = true
		return nil
	}
	if r.live, err = r.liveSecret(ctx, r.object); err != nil {
		return err
	}
	r.state.secret = judge(r.live, r.object, r.contentsOf(r.object))
	r.known = true
	return nil
}

// readAccount sets the uid of the identity, if the identity is a ServiceAccount that exists. The error is errAgain while
// the operator starts, or a [fault] if the operator may not read ServiceAccounts.
func (r *run) readAccount(ctx context.Context) error {
	account := r.state.want.account
	if account.Name == "" {
		return nil
	}
	uid, err := r.Accounts.UID(ctx, account)
	switch {
	case errors.Is(err, metawatch.ErrUnread):
		return errAgain
	case err != nil:
		return &fault{v1alpha1.ReasonPending, fmt.Sprintf(
			"The operator cannot read the ServiceAccount %s. Its role needs list and watch of serviceaccounts in the whole cluster. The operator retries.", account), err}
	}
	r.state.want.identity.UID = string(uid)
	return nil
}

// decide returns whether the object's namespace may have keys of the project. The cache can be out of date, so decide
// also asks the API server before it refuses an object that has keys.
func (r *run) decide(ctx context.Context) (ownership.Decision, error) {
	ask := func(reader client.Reader, namespaces ...string) (ownership.Decision, error) {
		declaring, err := ownership.Declaring(ctx, reader, r.state.want.project, namespaces...)
		decision := ownership.Decide(r.object.Namespace, declaring)
		if decision == ownership.Undeclared && r.AllowUndeclared {
			decision = ownership.Allowed
		}
		return decision, err
	}
	decision, err := ask(r.Client)
	if err != nil || decision == ownership.Allowed || len(r.state.keys) == 0 {
		return decision, err
	}
	return ask(r.Reader, r.Namespaces...)
}

// do executes one step and updates the state with the result.
func (r *run) do(ctx context.Context, s step) error {
	switch s.do {
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
		r.log(ctx, "changed the terms of a key", s.key, slog.String("scopes", record.Scopes.String()), slog.Int("rate", record.Rate), slog.Time("expires_at", record.ExpiresAt))
		r.event("Amended", "The terms of key %s have changed.", s.key.ID)
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
		r.log(ctx, "set the expiry of a key", s.key, slog.Time("expires_at", record.ExpiresAt))
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
		r.event("Revoked", "Key %s is revoked: %s.", s.key.ID, revokedBecause(s.why))
	}
	return nil
}

func revokedBecause(why cause) string {
	switch why {
	case undelivered:
		return "it was minted and never put into the Secret"
	case leaked:
		return v1alpha1.AnnotationRevokeKeys + " names it"
	case accountGone:
		return "its ServiceAccount was deleted"
	case notGranted:
		return "the project belongs to another namespace, which does not allow this one"
	}
	return "the object is being deleted"
}

// gone returns the error for a failed change of a key. The error is errAgain if the database has no such key or no
// longer accepts it, and otherwise a [fault].
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

// mint mints a key and puts it into the Secret. It tries the write as a dry run first. Otherwise each retry would mint
// a key for a Secret that cannot be written. It returns errAgain if another operator has minted meanwhile.
func (r *run) mint(ctx context.Context, why cause) error {
	if !r.state.want.identity.IsZero() {
		return r.grant(ctx, why)
	}
	if r.written {
		return errAgain
	}
	c := r.contentsOf(r.object)
	trial, _ := auth.Mint()
	c.key, c.keyID = trial, auth.NewKeyID()
	if err := r.write(ctx, r.object, r.live, c, client.DryRunAll); err != nil {
		return secretFault(err)
	}
	// Another operator that finds the undelivered key revokes it after Settle, so give up well before that.
	ctx, cancel := context.WithTimeout(ctx, r.Settle/2)
	defer cancel()
	key, k, err := r.mintOwned(ctx, why)
	if err != nil {
		return err
	}
	c.key, c.keyID = key, k.ID
	if err := r.write(ctx, r.object, r.live, c); err != nil {
		return secretFault(err)
	}
	r.written = true
	r.state.secret = secret{exists: true, owned: true, holds: []auth.Hash{k.Hash}, keyID: k.ID, tidy: true}
	r.log(ctx, "minted a key", k, slog.String("cause", string(why)), slog.String("secret", c.name))
	reason := "Rotated"
	if why == first {
		reason = "Minted"
	}
	r.event(reason, "Key %s is in the Secret %s: %s.", k.ID, c.name, mintedBecause(why))
	return nil
}

// grant records the grant of the object's identity. It returns a fault Conflict if the project has another active grant
// for the identity.
func (r *run) grant(ctx context.Context, why cause) error {
	_, k, err := r.mintOwned(ctx, why)
	if err != nil {
		return err
	}
	r.log(ctx, "granted an identity", k, slog.String("cause", string(why)))
	r.event("Granted", "The %v has the grant %s.", k.Identity, k.ID)
	return nil
}

// mintOwned stores the next key of the object, or the grant of its identity, and adds it to the state. It returns
// errAgain if another operator has done so meanwhile.
func (r *run) mintOwned(ctx context.Context, why cause) (config.Secret, pgkeys.Owned, error) {
	w := r.state.want
	key, k, err := r.Keys.MintOwned(ctx, pgkeys.OwnedOptions{
		MintOptions: pgkeys.MintOptions{
			ProjectID: w.project, Name: w.terms.Name, Scopes: w.terms.Scopes, Rate: w.terms.Rate, ExpiresAt: w.terms.ExpiresAt, Identity: w.identity,
		},
		Owner:   ownerOf(r.Realm, r.object),
		Number:  r.state.last + 1,
		Request: w.request,
	})
	switch {
	case errors.Is(err, pgkeys.ErrOvertaken):
		return config.Secret{}, pgkeys.Owned{}, errAgain
	case errors.Is(err, pgkeys.ErrExists):
		active, _, failed := r.Keys.Owned(ctx, w.project, ownerOf(r.Realm, r.object))
		if failed != nil || slices.ContainsFunc(active, func(k pgkeys.Owned) bool { return k.Identity == w.identity }) {
			return config.Secret{}, pgkeys.Owned{}, errAgain
		}
		return config.Secret{}, pgkeys.Owned{}, &fault{v1alpha1.ReasonConflict, fmt.Sprintf(
			"The project has another active grant for the %v (lectern keys list shows its owner). Revoke that grant, or delete its object. The operator retries.", w.identity), err}
	case err != nil:
		return config.Secret{}, pgkeys.Owned{}, keysFault(err)
	}
	r.state.last = k.Number
	r.state.keys = append(r.state.keys, k)
	r.meters.minted(ctx, why)
	return key, k, nil
}

func mintedBecause(why cause) string {
	switch why {
	case scheduled:
		return "the previous key was due for rotation"
	case asked:
		return v1alpha1.AnnotationRotate + " asked for it"
	case leaked:
		return v1alpha1.AnnotationRevokeKeys + " names the previous key"
	case secretGone:
		return "the Secret was deleted"
	case secretEdited:
		return "the Secret held no working key"
	case unknown:
		return "the key database did not know the previous key, so it was emptied or restored"
	case endedOutside:
		return "the expiry of the previous key was set outside Kubernetes"
	}
	return "it is the first key"
}

// tidy writes the Secret again with the key k, which the Secret already holds, to correct the other fields of the
// Secret.
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
	r.state.secret = secret{exists: true, owned: true, holds: []auth.Hash{k.Hash}, keyID: k.ID, tidy: true}
	r.log(ctx, "restored the Secret", k, slog.String("secret", c.name))
	r.event("SecretRestored", "The Secret %s is restored. Its key is unchanged.", c.name)
	return nil
}

func (r *run) log(ctx context.Context, what string, k pgkeys.Owned, more ...slog.Attr) {
	attrs := append([]slog.Attr{
		slog.String("namespace", r.object.Namespace), slog.String("name", r.object.Name), slog.String("key_id", k.ID),
	}, more...)
	r.Log.LogAttrs(ctx, slog.LevelInfo, what, attrs...)
}

// event records an event of the type Normal on the object.
func (r *run) event(reason, note string, args ...any) {
	r.events.Eventf(r.object, nil, corev1.EventTypeNormal, reason, "Reconcile", note, args...)
}
