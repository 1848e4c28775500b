package apikey

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

// state holds everything that a run has read about one APIKey. [plan] computes the next step from a state and the time.
type state struct {
	deleting bool
	want     want
	secret   secret
	keys     []pgkeys.Owned     // the active keys, by number
	last     int64              // number of the newest key, active or not
	project  ownership.Decision // whether the object's namespace may have keys of the project
	stuck    bool               // minting failed in this run; steps that need no new key continue
}

// want is the desired state of an APIKey, from its spec and its annotations.
type want struct {
	project string
	terms   pgkeys.Terms
	request string        // value of lectern.dev/rotate
	revoke  []string      // key ids in lectern.dev/revoke-keys
	every   time.Duration // 0: no scheduled rotation
	overlap time.Duration

	identity auth.Identity        // zero: a key
	account  types.NamespacedName // the ServiceAccount of the identity; zero: another identity
}

// noAccount reports whether the ServiceAccount of the identity does not exist.
func (w *want) noAccount() bool { return w.account.Name != "" && w.identity.UID == "" }

// secret is the observed state of an APIKey's Secret, with hashes in place of its values. The zero secret means that no
// Secret exists. An object with an identity has the secret of [identitySecret] instead.
type secret struct {
	exists bool
	owned  bool        // the object is its controller
	holds  []auth.Hash // hashes of its values, the value under the key's name first
	keyID  string      // key id in its annotation
	tidy   bool        // its other fields that belong to the operator are correct
}

// identitySecret returns the state of a Secret that always holds the hash of the identity. So an identity, which needs
// no Secret, has the same steps as a key, except tidy.
func identitySecret(i auth.Identity) secret {
	return secret{exists: true, owned: true, holds: []auth.Hash{i.Hash()}, tidy: true}
}

// effect is the kind of a step: how the step changes the object, its keys or its Secret.
type effect string

const (
	nothing effect = ""
	mint    effect = "mint"    // mint a key and put it into the Secret, or grant the identity
	deliver effect = "deliver" // record that the Secret holds the key
	amend   effect = "amend"   // set a key's name, scopes, rate and expiry
	end     effect = "end"     // set a key's expiry
	revoke  effect = "revoke"  // revoke a key at once
	tidy    effect = "tidy"    // correct the other fields of the Secret
)

// cause is the reason to mint or revoke a key. Metrics and logs contain the text of a cause.
type cause string

const (
	first         cause = "first"          // the object never had a key
	scheduled     cause = "scheduled"      // the schedule requires a new key
	asked         cause = "asked"          // lectern.dev/rotate changed
	leaked        cause = "leaked"         // lectern.dev/revoke-keys names the key
	secretGone    cause = "secret_gone"    // the Secret was deleted
	secretEdited  cause = "secret_edited"  // the Secret holds no working key
	unknown       cause = "unknown"        // the database never had the Secret's key: the database was emptied, or restored
	notActive     cause = "not_active"     // the object's earlier grant has ended, or is of another CLUSTER_ISSUER or uid
	endedOutside  cause = "ended_outside"  // someone else set an expiry on the current key
	undelivered   cause = "undelivered"    // the key never reached the Secret
	notGranted    cause = "not_granted"    // the project belongs to a namespace that does not allow this one
	accountGone   cause = "account_gone"   // the ServiceAccount of the grant was deleted
	objectDeleted cause = "object_deleted" // the object is being deleted, and waits for a finalizer of another program
	objectGone    cause = "object_gone"    // the sweep found no object
	notWatched    cause = "not_watched"    // the object's namespace is no longer watched
)

// step is one change that a run makes to an APIKey, its keys or its Secret. The zero step changes nothing.
type step struct {
	do    effect
	key   pgkeys.Owned // for deliver, amend, end, revoke and tidy
	at    time.Time    // for end
	terms pgkeys.Terms // for amend
	why   cause        // for mint and revoke
}

// current returns the key that the object's Secret holds and the database accepts. It returns nil if there is none, or
// if the Secret is not the object's own.
func (s *state) current() *pgkeys.Owned {
	if !s.secret.owned {
		return nil
	}
	for _, h := range s.secret.holds {
		if i := slices.IndexFunc(s.keys, func(k pgkeys.Owned) bool { return k.Hash == h }); i >= 0 {
			return &s.keys[i]
		}
	}
	return nil
}

// plan returns the next step for an object in state s. If no step is left, it returns the zero step and the time of the
// next reconcile. A zero time means that the object only waits for an event. An undelivered key counts as lost only
// after the time settle.
func plan(s state, now time.Time, settle time.Duration) (next step, wake time.Time) {
	switch {
	case s.deleting:
		for _, k := range s.keys {
			return step{do: revoke, key: k, why: objectDeleted}, time.Time{}
		}
		return step{}, time.Time{}
	case s.accountChanged():
		// The lowest number comes first, so a grant of version 0.1.0, which has no uid, goes before the uid that shows the change.
		i := slices.IndexFunc(s.keys, func(k pgkeys.Owned) bool { return s.want.noAccount() || k.Identity.UID != s.want.identity.UID })
		return step{do: revoke, key: s.keys[i], why: accountGone}, time.Time{}
	case s.project == ownership.Foreign:
		for _, k := range s.keys {
			return step{do: revoke, key: k, why: notGranted}, time.Time{}
		}
		return step{}, time.Time{}
	case s.project == ownership.Undeclared && len(s.keys) == 0:
		return step{}, time.Time{} // no key is minted without a Project
	case s.want.noAccount():
		return step{}, time.Time{} // the account is awaited
	}
	if over := s.want.terms.ExpiresAt; !over.IsZero() && !now.Before(over) {
		for _, k := range s.keys {
			return step{do: end, key: k, at: over}, time.Time{}
		}
		return step{}, time.Time{}
	}

	current := s.current()
	settled := settledAt(s, current, settle)
	wait := now.Before(settled) && settled.Sub(now) <= 2*settle // a longer wait: the clock was set back since a key was minted
	if wait {
		wake = settled
	}
	for _, k := range s.keys {
		if k.DeliveredAt.IsZero() && (current == nil || k.ID != current.ID) && !now.Before(k.CreatedAt.Add(settle)) {
			return step{do: revoke, key: k, why: undelivered}, time.Time{}
		}
	}
	if current != nil && current.DeliveredAt.IsZero() {
		return step{do: deliver, key: *current}, time.Time{}
	}
	mayWrite := !s.stuck && (!s.secret.exists || s.secret.owned)
	if why, due := s.due(current, now); due && mayWrite && !wait && s.project == ownership.Allowed {
		return step{do: mint, why: why}, time.Time{}
	}
	for _, k := range s.keys {
		// If possible, a new key has replaced a leaked one by now. If not, revoke the leaked key anyway.
		if slices.Contains(s.want.revoke, k.ID) {
			return step{do: revoke, key: k, why: leaked}, time.Time{}
		}
	}
	for _, k := range s.keys {
		if k.DeliveredAt.IsZero() {
			continue // another operator may still be delivering it
		}
		if terms := s.termsOf(k, current, now); !same(terms, termsNow(k)) {
			return step{do: amend, key: k, terms: terms}, time.Time{}
		}
	}
	if current == nil {
		return step{}, wake
	}
	if mayWrite && s.want.identity.IsZero() && (!s.secret.tidy || s.secret.keyID != current.ID) {
		return step{do: tidy, key: *current}, time.Time{}
	}
	for _, k := range s.keys {
		if k.ID == current.ID || k.DeliveredAt.IsZero() {
			continue
		}
		if at := current.DeliveredAt.Add(s.overlapOf(k)); k.ExpiresAt.IsZero() || at.Before(k.ExpiresAt) {
			return step{do: end, key: k, at: at}, time.Time{}
		}
		wake = earlier(wake, k.ExpiresAt)
	}
	// An overdue rotation waits for another event.
	if at := current.CreatedAt.Add(s.want.every); s.want.every > 0 && now.Before(at) {
		wake = earlier(wake, at)
	}
	return step{}, earlier(wake, current.ExpiresAt)
}

// accountChanged reports whether the object has a grant of a ServiceAccount that does not exist any more.
func (s *state) accountChanged() bool {
	return s.want.noAccount() && len(s.keys) > 0 || s.want.account.Name != "" && slices.ContainsFunc(s.keys, func(k pgkeys.Owned) bool {
		return k.Identity.UID != "" && k.Identity.UID != s.want.identity.UID
	})
}

// overlapOf returns how long the previous key k works after the delivery of the current key. The grant of version 0.1.0
// for a ServiceAccount has no uid. It works on while services of that version run.
func (s *state) overlapOf(k pgkeys.Owned) time.Duration {
	plain := s.want.identity
	plain.UID = ""
	if s.want.identity.UID != "" && k.Identity == plain {
		return defaultOverlap
	}
	return s.want.overlap
}

// settledAt returns the time before which no key is minted, or zero. Each undelivered key that the Secret does not hold
// has the time settle, from its creation, to reach the Secret. If the Secret holds no working key, the newest key has
// the same time. Otherwise two writers of the same Secret would make each other rotate without end.
func settledAt(s state, current *pgkeys.Owned, settle time.Duration) time.Time {
	var at time.Time
	for i, k := range s.keys {
		if current != nil && k.ID == current.ID {
			continue
		}
		newest := i == len(s.keys)-1
		if k.DeliveredAt.IsZero() || newest && current == nil {
			if t := k.CreatedAt.Add(settle); t.After(at) {
				at = t
			}
		}
	}
	return at
}

// due reports whether a new key must be minted, and returns the cause.
func (s *state) due(current *pgkeys.Owned, now time.Time) (cause, bool) {
	switch {
	case current == nil && s.last == 0 && s.secret.keyID != "":
		return unknown, true
	case current == nil && s.last == 0:
		return first, true
	case current == nil && !s.want.identity.IsZero():
		return notActive, true
	case current == nil && !s.secret.exists:
		return secretGone, true
	case current == nil:
		return secretEdited, true
	case slices.Contains(s.want.revoke, current.ID):
		return leaked, true
	case current.Ended:
		return endedOutside, true
	case s.want.request != "" && s.want.request != current.Request:
		return asked, true
	case s.want.every > 0 && !now.Before(current.CreatedAt.Add(s.want.every)):
		return scheduled, true
	}
	return "", false
}

// termsOf returns the desired terms of k. A previous key, or a key whose end was set, keeps an expiry that is earlier
// than spec.expiresAt. Terms end a previous grant without a uid, after its overlap. So after a rollback, an operator of
// version 0.1.0 amends the grant, which then works on.
func (s *state) termsOf(k pgkeys.Owned, current *pgkeys.Owned, now time.Time) pgkeys.Terms {
	terms := s.want.terms
	isCurrent := current != nil && k.ID == current.ID
	if (k.Ended || !isCurrent) && !k.ExpiresAt.IsZero() && (terms.ExpiresAt.IsZero() || k.ExpiresAt.Before(terms.ExpiresAt)) {
		terms.ExpiresAt = k.ExpiresAt
	}
	if current != nil && !isCurrent && s.overlapOf(k) != s.want.overlap {
		if at := current.DeliveredAt.Add(s.overlapOf(k)); now.Before(at) && (terms.ExpiresAt.IsZero() || at.Before(terms.ExpiresAt)) {
			terms.ExpiresAt = at
		}
	}
	return terms
}

func termsNow(k pgkeys.Owned) pgkeys.Terms {
	return pgkeys.Terms{Name: k.Name, Scopes: k.Scopes, Rate: k.Rate, ExpiresAt: k.ExpiresAt}
}

func same(a, b pgkeys.Terms) bool {
	return a.Name == b.Name && a.Scopes == b.Scopes && a.Rate == b.Rate && a.ExpiresAt.Equal(b.ExpiresAt)
}

// earlier returns the earlier of two times. If one time is zero, earlier returns the other time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
