package apikey

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

func TestPlan(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const settle = 10 * time.Second
	terms := pgkeys.Terms{Name: "reports", Scopes: auth.DefaultScopes}
	hash := func(id string) auth.Hash { return auth.HashKey(id) }
	// key is one that was minted an hour ago and delivered at once.
	key := func(id string, change ...func(*pgkeys.Owned)) pgkeys.Owned {
		k := pgkeys.Owned{
			Record: auth.Record{ID: id, Name: terms.Name, Scopes: terms.Scopes, CreatedAt: now.Add(-time.Hour)},
			Hash:   hash(id), Number: 1, DeliveredAt: now.Add(-time.Hour),
		}
		for _, c := range change {
			c(&k)
		}
		return k
	}
	lost := func(k *pgkeys.Owned) { k.DeliveredAt = time.Time{} }
	young := func(k *pgkeys.Owned) { k.CreatedAt = now.Add(-time.Second) }
	until := func(at time.Time) func(*pgkeys.Owned) {
		return func(k *pgkeys.Owned) { k.ExpiresAt, k.Ended = at, true }
	}
	holds := func(id string) secret {
		return secret{exists: true, owned: true, holds: []auth.Hash{hash(id)}, keyID: id, tidy: true}
	}
	base := want{project: "p", terms: terms, overlap: 20 * time.Minute}
	wants := func(change func(*want)) want {
		w := base
		change(&w)
		return w
	}
	type in = state
	keys := func(k ...pgkeys.Owned) []pgkeys.Owned { return k }
	wait := func(d time.Duration) time.Time { return now.Add(d) }
	tests := []struct {
		name   string
		in     in
		do     effect
		key    string
		why    cause
		at     time.Time
		wake   time.Time
		scopes auth.Scopes
	}{
		{name: "no key yet", in: in{want: base}, do: mint, why: first},
		{name: "nothing to do", in: in{want: base, secret: holds("a"), keys: keys(key("a")), last: 1}},
		{name: "not noted as delivered", in: in{want: base, secret: holds("a"), keys: keys(key("a", lost)), last: 1}, do: deliver, key: "a"},
		{name: "before its time", in: in{want: wants(func(w *want) { w.every = 90 * time.Minute }), secret: holds("a"), keys: keys(key("a")), last: 1}, wake: wait(30 * time.Minute)},
		{name: "its time", in: in{want: wants(func(w *want) { w.every = time.Hour }), secret: holds("a"), keys: keys(key("a")), last: 1}, do: mint, why: scheduled},
		{name: "asked", in: in{want: wants(func(w *want) { w.request = "x" }), secret: holds("a"), keys: keys(key("a")), last: 1}, do: mint, why: asked},
		{
			name: "asked before, and heeded",
			in:   in{want: wants(func(w *want) { w.request = "x" }), secret: holds("a"), keys: keys(key("a", func(k *pgkeys.Owned) { k.Request = "x" })), last: 1},
		},
		{name: "asked no more", in: in{want: base, secret: holds("a"), keys: keys(key("a", func(k *pgkeys.Owned) { k.Request = "x" })), last: 1}},
		{name: "Secret deleted", in: in{want: base, keys: keys(key("a")), last: 1}, do: mint, why: secretGone},
		{name: "Secret deleted just after it was made", in: in{want: base, keys: keys(key("a", young)), last: 1}, wake: wait(9 * time.Second)},
		{name: "Secret edited", in: in{want: base, secret: holds("b"), keys: keys(key("a")), last: 1}, do: mint, why: secretEdited},
		{name: "all keys revoked by people", in: in{want: base, secret: holds("a"), last: 1}, do: mint, why: secretEdited},
		{name: "an emptied database", in: in{want: base, secret: holds("a")}, do: mint, why: unknown},
		{name: "Secret of somebody else", in: in{want: base, secret: secret{exists: true}}},
		{name: "Secret of somebody else, by now", in: in{want: base, secret: secret{exists: true}, keys: keys(key("a")), last: 1}},
		{
			name: "Secret of somebody else, and a leak", do: revoke, key: "a", why: leaked,
			in: in{want: wants(func(w *want) { w.revoke = []string{"a"} }), secret: secret{exists: true}, keys: keys(key("a")), last: 1},
		},
		{name: "minted, and lost", in: in{want: base, keys: keys(key("a", lost)), last: 1}, do: revoke, key: "a", why: undelivered},
		{name: "minted, and lost, before the clock was set back", in: in{want: base, keys: keys(key("a", lost, func(k *pgkeys.Owned) { k.CreatedAt = now.Add(time.Hour) })), last: 1}, do: mint, why: secretGone},
		{name: "minted, by somebody who may be at it", in: in{want: base, keys: keys(key("a", lost, young)), last: 1}, wake: wait(9 * time.Second)},
		{
			name: "rotated, by somebody who may be at it", wake: wait(9 * time.Second),
			in: in{want: wants(func(w *want) { w.request = "x" }), secret: holds("a"), keys: keys(key("a"), key("b", lost, young)), last: 2},
		},
		{
			name: "its time, and somebody may be at it", wake: wait(9 * time.Second),
			in: in{want: wants(func(w *want) { w.every = time.Hour }), secret: holds("a"), keys: keys(key("a"), key("b", lost, young)), last: 2},
		},
		{name: "its time, and none can be minted", in: in{stuck: true, want: wants(func(w *want) { w.every = time.Hour }), secret: holds("a"), keys: keys(key("a")), last: 1}},
		{name: "rotated, and lost", in: in{want: wants(func(w *want) { w.request = "x" }), secret: holds("a"), keys: keys(key("a"), key("b", lost)), last: 2}, do: revoke, key: "b", why: undelivered},
		{
			name: "rotated", in: in{want: base, secret: holds("b"), keys: keys(key("a"), key("b", young, func(k *pgkeys.Owned) { k.DeliveredAt = now })), last: 2},
			do: end, key: "a", at: wait(20 * time.Minute),
		},
		{
			name: "in the overlap", wake: wait(20 * time.Minute),
			in: in{want: base, secret: holds("b"), keys: keys(key("a", until(wait(20*time.Minute))), key("b", young, func(k *pgkeys.Owned) { k.DeliveredAt = now })), last: 2},
		},
		{
			name: "overlap made shorter", do: end, key: "a", at: wait(time.Minute),
			in: in{
				want: wants(func(w *want) { w.overlap = time.Minute }), secret: holds("b"), last: 2,
				keys: keys(key("a", until(wait(20*time.Minute))), key("b", young, func(k *pgkeys.Owned) { k.DeliveredAt = now })),
			},
		},
		{name: "the current one leaked", in: in{want: wants(func(w *want) { w.revoke = []string{"a"} }), secret: holds("a"), keys: keys(key("a")), last: 1}, do: mint, why: leaked},
		{
			name: "the current one leaked, and none can be minted", do: revoke, key: "a", why: leaked,
			in: in{stuck: true, want: wants(func(w *want) { w.revoke = []string{"a"} }), secret: holds("a"), keys: keys(key("a")), last: 1},
		},
		{name: "one before it leaked", in: in{want: wants(func(w *want) { w.revoke = []string{"a"} }), secret: holds("b"), keys: keys(key("a"), key("b")), last: 2}, do: revoke, key: "a", why: leaked},
		{name: "an id that is no key of the object", in: in{want: wants(func(w *want) { w.revoke = []string{"z"} }), secret: holds("a"), keys: keys(key("a")), last: 1}},
		{name: "given an end by people", in: in{want: base, secret: holds("a"), keys: keys(key("a", until(wait(time.Hour)))), last: 1}, do: mint, why: endedOutside},
		{
			name: "other scopes", do: amend, key: "a", scopes: auth.ScopesOf(auth.ProxyUse),
			in: in{want: wants(func(w *want) { w.terms.Scopes = auth.ScopesOf(auth.ProxyUse) }), secret: holds("a"), keys: keys(key("a")), last: 1},
		},
		{
			name: "other scopes, in the overlap", do: amend, key: "a", scopes: auth.ScopesOf(auth.ProxyUse), at: wait(time.Minute),
			in: in{
				want: wants(func(w *want) { w.terms.Scopes = auth.ScopesOf(auth.ProxyUse) }), secret: holds("b"), last: 2,
				keys: keys(key("a", until(wait(time.Minute))), key("b", func(k *pgkeys.Owned) { k.Scopes = auth.ScopesOf(auth.ProxyUse) })),
			},
		},
		{
			name: "an expiry", do: amend, key: "a", at: wait(time.Hour), scopes: auth.DefaultScopes,
			in: in{want: wants(func(w *want) { w.terms.ExpiresAt = wait(time.Hour) }), secret: holds("a"), keys: keys(key("a")), last: 1},
		},
		{
			name: "no expiry any more", do: amend, key: "a", scopes: auth.DefaultScopes,
			in: in{want: base, secret: holds("a"), keys: keys(key("a", func(k *pgkeys.Owned) { k.ExpiresAt = wait(time.Hour) })), last: 1},
		},
		{
			name: "with an expiry", wake: wait(time.Hour),
			in: in{want: wants(func(w *want) { w.terms.ExpiresAt = wait(time.Hour) }), secret: holds("a"), keys: keys(key("a", func(k *pgkeys.Owned) { k.ExpiresAt = wait(time.Hour) })), last: 1},
		},
		{name: "over", in: in{want: wants(func(w *want) { w.terms.ExpiresAt = now }), secret: holds("a"), last: 1}},
		{name: "over, before any key", in: in{want: wants(func(w *want) { w.terms.ExpiresAt = now })}},
		{name: "over by another spec", in: in{want: wants(func(w *want) { w.terms.ExpiresAt = wait(-time.Minute) }), secret: holds("a"), keys: keys(key("a")), last: 1}, do: end, key: "a", at: wait(-time.Minute)},
		{name: "Secret untidy", in: in{want: base, secret: secret{exists: true, owned: true, holds: []auth.Hash{hash("a")}, keyID: "a"}, keys: keys(key("a")), last: 1}, do: tidy, key: "a"},
		{name: "Secret with another id", in: in{want: base, secret: secret{exists: true, owned: true, tidy: true, holds: []auth.Hash{hash("a")}, keyID: "z"}, keys: keys(key("a")), last: 1}, do: tidy, key: "a"},
		{name: "not granted", in: in{project: ownership.Foreign, want: base}},
		{name: "granted no more", in: in{project: ownership.Foreign, want: base, secret: holds("a"), keys: keys(key("a")), last: 1}, do: revoke, key: "a", why: notGranted},
		{name: "not declared", in: in{project: ownership.Undeclared, want: base}},
		{name: "declared no more", in: in{project: ownership.Undeclared, want: base, secret: holds("a"), keys: keys(key("a")), last: 1}},
		{name: "declared no more, and its time has come", in: in{project: ownership.Undeclared, want: wants(func(w *want) { w.every = 30 * time.Minute }), secret: holds("a"), keys: keys(key("a")), last: 1}},
		{name: "declared no more, and its Secret is gone", in: in{project: ownership.Undeclared, want: base, keys: keys(key("a")), last: 1}},
		{name: "declared no more, and leaked", in: in{project: ownership.Undeclared, want: wants(func(w *want) { w.revoke = []string{"a"} }), secret: holds("a"), keys: keys(key("a")), last: 1}, do: revoke, key: "a", why: leaked},
		{name: "declared no more, and deleted", in: in{project: ownership.Undeclared, deleting: true, want: base, keys: keys(key("a")), last: 1}, do: revoke, key: "a", why: objectDeleted},
		{name: "deleted", in: in{deleting: true, want: base, keys: keys(key("a"), key("b")), last: 2}, do: revoke, key: "a", why: objectDeleted},
		{name: "deleted, with a key that nobody has", in: in{deleting: true, want: base, keys: keys(key("a", lost, young)), last: 1}, do: revoke, key: "a", why: objectDeleted},
		{name: "deleted, all revoked", in: in{deleting: true, want: base, last: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, wake := plan(tt.in, now, settle)
			want := step{do: tt.do, why: tt.why}
			for _, k := range tt.in.keys {
				if k.ID == tt.key {
					want.key = k
				}
			}
			switch tt.do {
			case end:
				want.at = tt.at
			case amend:
				want.terms = pgkeys.Terms{Name: terms.Name, Scopes: tt.scopes, ExpiresAt: tt.at}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
			if !wake.Equal(tt.wake) {
				t.Errorf("wakes at %v, want %v", wake, tt.wake)
			}
		})
	}
}
