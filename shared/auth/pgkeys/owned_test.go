package pgkeys_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
)

func ownedOptions(id string, number int64) pgkeys.OwnedOptions {
	return pgkeys.OwnedOptions{
		MintOptions: pgkeys.MintOptions{ProjectID: "p", Name: "reports"},
		Owner:       auth.Owner{Realm: "cluster", ID: id, Name: "shop/" + id},
		Number:      number,
		Request:     "schedule",
	}
}

func (b *bench) mintOwned(t *testing.T, o pgkeys.OwnedOptions) (config.Secret, pgkeys.Owned) {
	t.Helper()
	key, k, err := b.MintOwned(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return key, k
}

// owned returns the ids of the keys that Owned returns.
func (b *bench) owned(t *testing.T, owner auth.Owner) (ids []string, last int64) {
	t.Helper()
	active, last, err := b.Owned(t.Context(), "p", owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range active {
		ids = append(ids, k.ID)
	}
	return ids, last
}

func TestOwnedKeys(t *testing.T) {
	b := setup(t)
	o := ownedOptions("1", 1)
	o.ExpiresAt = b.now.Add(time.Hour)
	key, first := b.mintOwned(t, o)
	want := pgkeys.Owned{
		Record: auth.Record{
			ID: first.ID, ProjectID: "p", Name: "reports", Scopes: auth.DefaultScopes,
			CreatedAt: b.now, ExpiresAt: b.now.Add(time.Hour), Owner: o.Owner,
		},
		Hash: auth.HashKey(key.Reveal()), Number: 1, Request: "schedule",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("minted: %s", diff)
	}
	if r, err := b.lookup("p", key); err != nil || r.ID != first.ID {
		t.Errorf("%+v, %v", r, err)
	}

	_, second := b.mintOwned(t, ownedOptions("1", 2))
	_, other := b.mintOwned(t, ownedOptions("2", 1))
	b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	check := func(owner auth.Owner, last int64, ids ...string) {
		t.Helper()
		got, gotLast := b.owned(t, owner)
		if diff := cmp.Diff(ids, got); diff != "" || gotLast != last {
			t.Errorf("last %d, want %d; ids: %s", gotLast, last, diff)
		}
	}
	check(o.Owner, 2, first.ID, second.ID)
	check(other.Owner, 1, other.ID)
	check(auth.Owner{Realm: "another cluster", ID: "1"}, 0)

	active, _, err := b.Owned(t.Context(), "p", o.Owner)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, active[0]); diff != "" {
		t.Error(diff)
	}
	b.now = b.now.Add(time.Hour)
	check(o.Owner, 2, second.ID)
	if _, err := b.Revoke(t.Context(), "p", second.ID); err != nil {
		t.Fatal(err)
	}
	check(o.Owner, 2) // the number is not used again

	var names []string
	records, err := b.List(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		names = append(names, r.Owner.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"", "shop/1", "shop/1", "shop/2"}, names); diff != "" {
		t.Errorf("owners in the list: %s", diff)
	}
}

func TestMintOwnedRefuses(t *testing.T) {
	b := setup(t)
	b.mintOwned(t, ownedOptions("1", 1))
	for _, tt := range []struct {
		name string
		in   func(*pgkeys.OwnedOptions)
		is   error
	}{
		{"no realm", func(o *pgkeys.OwnedOptions) { o.Owner.Realm = "" }, nil},
		{"no id", func(o *pgkeys.OwnedOptions) { o.Owner.ID = "" }, nil},
		{"long name", func(o *pgkeys.OwnedOptions) { o.Owner.Name = strings.Repeat("n", 513) }, nil},
		{"long request", func(o *pgkeys.OwnedOptions) { o.Request = strings.Repeat("n", 1025) }, nil},
		{"number 0", func(o *pgkeys.OwnedOptions) { o.Number = 0 }, nil},
		{"no project", func(o *pgkeys.OwnedOptions) { o.ProjectID = "" }, nil},
		{"a number that is taken", func(o *pgkeys.OwnedOptions) { o.Number = 1 }, pgkeys.ErrOvertaken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := ownedOptions("1", 2)
			tt.in(&o)
			_, _, err := b.MintOwned(t.Context(), o)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("err = %v", err)
			}
		})
	}
	if ids, last := b.owned(t, ownedOptions("1", 1).Owner); len(ids) != 1 || last != 1 {
		t.Errorf("%d keys up to %d, want 1 up to 1", len(ids), last)
	}
}

// TestMintOwnedAtOnce checks that exactly one of many concurrent mints of an owner's next key succeeds.
func TestMintOwnedAtOnce(t *testing.T) {
	b := setup(t)
	var wg sync.WaitGroup
	outcomes := make(chan error, 16)
	for range cap(outcomes) {
		wg.Go(func() {
			_, _, err := b.MintOwned(t.Context(), ownedOptions("1", 1))
			outcomes <- err
		})
	}
	wg.Wait()
	minted := 0
	for range cap(outcomes) {
		if err := <-outcomes; err == nil {
			minted++
		} else if !errors.Is(err, pgkeys.ErrOvertaken) {
			t.Error(err)
		}
	}
	if minted != 1 {
		t.Errorf("%d minted, want 1", minted)
	}
}

func TestDeliver(t *testing.T) {
	b := setup(t)
	_, k := b.mintOwned(t, ownedOptions("1", 1))
	first := b.now
	for range 2 {
		got, err := b.Deliver(t.Context(), "p", k.ID)
		if err != nil || !got.DeliveredAt.Equal(first) || got.Number != 1 {
			t.Errorf("%+v, %v; want it delivered at %v", got, err, first)
		}
		b.now = b.now.Add(time.Minute)
	}
	_, unowned := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	for _, at := range []struct{ project, id string }{{"q", k.ID}, {"p", "key_no"}, {"p", unowned.ID}} {
		if _, err := b.Deliver(t.Context(), at.project, at.id); !errors.Is(err, pgkeys.ErrNotFound) {
			t.Errorf("%v: %v, want not found", at, err)
		}
	}
}

func TestEachOwned(t *testing.T) {
	b := setup(t)
	var want []string
	for i, id := range []string{"1", "2", "3", "4"} {
		o := ownedOptions(id, 1)
		o.ProjectID = []string{"p", "q"}[i%2]
		if id == "3" {
			o.ExpiresAt = b.now.Add(time.Second)
		}
		_, k := b.mintOwned(t, o)
		if id != "3" && id != "4" {
			want = append(want, k.ID)
		}
		if id == "4" {
			if _, err := b.Revoke(t.Context(), o.ProjectID, k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	elsewhere := ownedOptions("5", 1)
	elsewhere.Owner.Realm = "another cluster"
	b.mintOwned(t, elsewhere)
	b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	b.now = b.now.Add(time.Second)

	var got []string
	err := b.EachOwned(t.Context(), "cluster", func(k pgkeys.Owned) error {
		got = append(got, k.ID)
		return nil
	})
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	enough := errors.New("enough")
	if err := b.EachOwned(t.Context(), "cluster", func(pgkeys.Owned) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("err = %v, want the error of do", err)
	}
	if err := b.EachOwned(t.Context(), "", func(pgkeys.Owned) error { return enough }); err != nil {
		t.Errorf("no realm: %v: got keys without an owner", err)
	}
}

func TestAmend(t *testing.T) {
	b := setup(t)
	key, r := b.mint(t, pgkeys.MintOptions{ProjectID: "p", Name: "a", ExpiresAt: b.now.Add(time.Hour)})
	for _, tt := range []struct {
		name string
		in   pgkeys.Terms
	}{
		{"all", pgkeys.Terms{Name: "b", Scopes: auth.ScopesOf(auth.ProxyUse), Rate: 7, ExpiresAt: b.now.Add(2 * time.Hour)}},
		{"no expiry", pgkeys.Terms{Scopes: auth.ScopesOf(auth.EntriesRead)}},
		{"an expiry", pgkeys.Terms{Scopes: auth.ScopesOf(auth.EntriesRead), ExpiresAt: b.now.Add(time.Minute)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := b.Amend(t.Context(), "p", r.ID, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			want := r
			want.Name, want.Scopes, want.Rate, want.ExpiresAt = tt.in.Name, tt.in.Scopes, tt.in.Rate, tt.in.ExpiresAt
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if n := len(b.invalidated.take()); n != 1 {
				t.Errorf("invalidated %d times, want once", n)
			}
			found, err := b.lookup("p", key)
			if diff := cmp.Diff(want, found); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	if _, err := b.Amend(t.Context(), "p", r.ID, pgkeys.Terms{ExpiresAt: b.now}); err == nil || errors.Is(err, pgkeys.ErrNotFound) {
		t.Errorf("an expiry that is over: %v", err)
	}
	b.now = b.now.Add(time.Minute)
	if _, err := b.Amend(t.Context(), "p", r.ID, pgkeys.Terms{}); !errors.Is(err, pgkeys.ErrNotFound) {
		t.Errorf("a key that has expired: %v, want not found", err)
	}
	_, gone := b.mint(t, pgkeys.MintOptions{ProjectID: "p"})
	if _, err := b.Revoke(t.Context(), "p", gone.ID); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct{ project, id string }{{"p", gone.ID}, {"q", r.ID}} {
		if _, err := b.Amend(t.Context(), at.project, at.id, pgkeys.Terms{}); !errors.Is(err, pgkeys.ErrNotFound) {
			t.Errorf("%v: %v, want not found", at, err)
		}
	}
}

func TestEnded(t *testing.T) {
	b := setup(t)
	end := b.now.Add(time.Hour)
	for _, tt := range []struct {
		name    string
		expires time.Time
		do      func(id string) error
		want    bool
	}{
		{"as minted", time.Time{}, func(string) error { return nil }, false},
		{"as minted for a time", end, func(string) error { return nil }, false},
		{"expired", time.Time{}, func(id string) error { _, err := b.Expire(t.Context(), "p", id, end); return err }, true},
		{"expired early", end, func(id string) error { _, err := b.Expire(t.Context(), "p", id, end.Add(-time.Minute)); return err }, true},
		{"expired late", end, func(id string) error { _, err := b.Expire(t.Context(), "p", id, end.Add(time.Minute)); return err }, false},
		{"rotated", end, func(id string) error { _, _, err := b.Rotate(t.Context(), "p", id, time.Minute); return err }, true},
		{"amended", end, func(id string) error {
			_, err := b.Amend(t.Context(), "p", id, pgkeys.Terms{ExpiresAt: end.Add(-time.Minute)})
			return err
		}, false},
		{"expired, then amended with that end", time.Time{}, func(id string) error {
			_, err := b.Expire(t.Context(), "p", id, end)
			if err == nil {
				_, err = b.Amend(t.Context(), "p", id, pgkeys.Terms{Rate: 1, ExpiresAt: end})
			}
			return err
		}, true},
		{"expired, then amended without an end", time.Time{}, func(id string) error {
			_, err := b.Expire(t.Context(), "p", id, end)
			if err == nil {
				_, err = b.Amend(t.Context(), "p", id, pgkeys.Terms{})
			}
			return err
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := ownedOptions(tt.name, 1)
			o.ExpiresAt = tt.expires
			_, k := b.mintOwned(t, o)
			if err := tt.do(k.ID); err != nil {
				t.Fatal(err)
			}
			active, _, err := b.Owned(t.Context(), "p", o.Owner)
			if err != nil || len(active) != 1 || active[0].Ended != tt.want {
				t.Errorf("%+v, %v; want ended %v", active, err, tt.want)
			}
		})
	}
}
