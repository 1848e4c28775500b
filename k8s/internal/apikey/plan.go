package apikey

import (
	"slices"
	"time"

	"github.com/lectern-dev/lectern/k8s/internal/grant"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

// state holds the data of a run about one object.
type state struct {
	deleting bool
	held     bool // by the finalizer
	want     want
	secret   secret
	keys     []pgkeys.Owned // those that are accepted, by number
	last     int64          // number of the key that was minted last
	project  grant.Decision // whether the object's namespace may have keys of the project
	stuck    bool           // a key cannot be minted or not be put into the Secret: what needs none is still done
}

// want is the desired state of the object.
type want struct {
	project string
	terms   pgkeys.Terms
	request string   // of lectern.dev/rotate
	revoke  []string // ids, of lectern.dev/revoke-keys
	every   time.Duration
	overlap time.Duration
}

// secret is the observed state of the object's Secret.
type secret struct {
	exists bool
	ours   bool
	holds  []auth.Hash // of its values, the one under the key's name first
	keyID  string      // of the key that it says it holds
	tidy   bool        // all else of ours in it is as it is to be
}

// effect is a kind of step.
type effect string

const (
	nothing effect = ""
	hold    effect = "hold"    // add the finalizer
	mint    effect = "mint"    // mint a key and put it into the Secret
	deliver effect = "deliver" // note that the Secret holds the key
	amend   effect = "amend"   // give a key the terms that are wanted
	end     effect = "end"     // have a key end at a time
	revoke  effect = "revoke"  // end a key at once
	tidy    effect = "tidy"    // put the rest of the Secret right
	release effect = "release" // remove the finalizer
)

// cause is why a key is minted or revoked. Its values stand in metrics and logs.
type cause string

const (
	first         cause = "first"          // there was none before
	scheduled     cause = "scheduled"      // its time has come
	asked         cause = "asked"          // by lectern.dev/rotate
	leaked        cause = "leaked"         // by lectern.dev/revoke-keys
	secretGone    cause = "secret_gone"    // the Secret was deleted
	secretEdited  cause = "secret_edited"  // the Secret holds no key that works
	endedOutside  cause = "ended_outside"  // somebody else gave the current key an end
	undelivered   cause = "undelivered"    // nobody has it
	notGranted    cause = "not_granted"    // the project is another namespace's
	objectDeleted cause = "object_deleted" // the object is being deleted
	objectGone    cause = "object_gone"    // the sweep found no object
)

// step is the next step.
type step struct {
	do    effect
	key   pgkeys.Owned // of deliver, amend, end and revoke
	at    time.Time    // of end
	terms pgkeys.Terms // of amend
	why   cause        // of mint and revoke
}

// current is the key that the Secret holds and the database accepts, nil when there is none.
func (s *state) current() *pgkeys.Owned {
	if !s.secret.ours {
		return nil
	}
	for _, h := range s.secret.holds {
		if i := slices.IndexFunc(s.keys, func(k pgkeys.Owned) bool { return k.Hash == h }); i >= 0 {
			return &s.keys[i]
		}
	}
	return nil
}

// plan says the next step, and when there is none, when to look again; zero: only when something happens.
// settle is how long a key that is not delivered is left to whoever minted it.
func plan(s state, now time.Time, settle time.Duration) (next step, wake time.Time) {
	switch {
	case s.deleting:
		return planDeletion(s), time.Time{}
	case s.project == grant.Foreign:
		for _, k := range s.keys {
			return step{do: revoke, key: k, why: notGranted}, time.Time{}
		}
		return step{}, time.Time{}
	case s.project == grant.Undeclared && len(s.keys) == 0:
		return step{}, time.Time{} // nothing new is issued
	case !s.held:
		// Before anything is minted, so that a deletion from now on finds what to revoke.
		return step{do: hold}, time.Time{}
	}
	if over := s.want.terms.ExpiresAt; !over.IsZero() && !now.Before(over) {
		for _, k := range s.keys {
			return step{do: end, key: k, at: over}, time.Time{}
		}
		return step{}, time.Time{}
	}

	current := s.current()
	settled := settledAt(s, current, settle)
	wait := now.Before(settled)
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
	mayWrite := !s.stuck && (!s.secret.exists || s.secret.ours)
	if why, due := s.due(current, now); due && mayWrite && !wait && s.project == grant.Allowed {
		return step{do: mint, why: why}, time.Time{}
	}
	for _, k := range s.keys {
		// A new key comes before this where it can; where it cannot, a leak is the greater harm.
		if slices.Contains(s.want.revoke, k.ID) {
			return step{do: revoke, key: k, why: leaked}, time.Time{}
		}
	}
	for _, k := range s.keys {
		if k.DeliveredAt.IsZero() {
			continue // whoever minted it may still be at it
		}
		if terms := s.termsOf(k, current); !same(terms, termsNow(k)) {
			return step{do: amend, key: k, terms: terms}, time.Time{}
		}
	}
	if current == nil {
		return step{}, wake
	}
	if mayWrite && (!s.secret.tidy || s.secret.keyID != current.ID) {
		return step{do: tidy, key: *current}, time.Time{}
	}
	for _, k := range s.keys {
		if k.ID == current.ID || k.DeliveredAt.IsZero() {
			continue
		}
		if at := current.DeliveredAt.Add(s.want.overlap); k.ExpiresAt.IsZero() || at.Before(k.ExpiresAt) {
			return step{do: end, key: k, at: at}, time.Time{}
		}
		wake = earlier(wake, k.ExpiresAt)
	}
	// One that is overdue waits for something else.
	if at := current.CreatedAt.Add(s.want.every); s.want.every > 0 && now.Before(at) {
		wake = earlier(wake, at)
	}
	return step{}, earlier(wake, current.ExpiresAt)
}

func planDeletion(s state) step {
	if !s.held {
		return step{}
	}
	for _, k := range s.keys {
		return step{do: revoke, key: k, why: objectDeleted}
	}
	return step{do: release}
}

// settledAt is until when nothing is minted: until the last key that is not delivered has been given time, and,
// where the Secret does not hold the last key that was, until some time after that key, so that two who write
// the same Secret do not drive each other. Zero: there is no such key.
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
	case current == nil && s.last == 0:
		return first, true
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

// termsOf are the terms that k is to have. A key that has an end keeps it.
func (s *state) termsOf(k pgkeys.Owned, current *pgkeys.Owned) pgkeys.Terms {
	terms := s.want.terms
	isCurrent := current != nil && k.ID == current.ID
	if (k.Ended || !isCurrent) && !k.ExpiresAt.IsZero() && (terms.ExpiresAt.IsZero() || k.ExpiresAt.Before(terms.ExpiresAt)) {
		terms.ExpiresAt = k.ExpiresAt
	}
	return terms
}

func termsNow(k pgkeys.Owned) pgkeys.Terms {
	return pgkeys.Terms{Name: k.Name, Scopes: k.Scopes, Rate: k.Rate, ExpiresAt: k.ExpiresAt}
}

func same(a, b pgkeys.Terms) bool {
	return a.Name == b.Name && a.Scopes == b.Scopes && a.Rate == b.Rate && a.ExpiresAt.Equal(b.ExpiresAt)
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
