package copytest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
	"github.com/lectern-dev/lectern/copies"
)

// Kind is a kind of destination, with a place for one copy of its own.
type Kind interface {
	// Open returns the copy at the place. An invalid option is an error.
	Open(t *testing.T, o Options) (copies.Destination, error)
	// Read returns what a user finds in the copy, without the package that wrote it. The result has no tables that
	// copies of the kind lack, and an erased value in none of them.
	Read(t *testing.T) Tables
	// Text returns all that the copy has stored, in tables or not. Text returns "" if the copy stores tables alone.
	Text(t *testing.T) string
	// Exact reports whether a copy keeps the bytes of entry_data, and not its value only.
	Exact() bool
}

// Injured is a [Kind] whose copies [copies.Verify] compares and repairs.
type Injured interface {
	Kind
	// Injuries returns what may happen to a copy of the source of the promise "verified", and which differences a
	// verification then names. The injuries of a group happen together.
	Injuries(t *testing.T) [][]Injury
	// Aside returns the records that a copy has put aside because its source has lost them, each as JSON for an import.
	Aside(t *testing.T) []string
}

// Injury is a change of a copy by somebody else. Do returns the names of the differences, as in "missing entry en_1".
type Injury struct {
	Name string
	Do   func(t *testing.T) []string
}

// Options are the options that kinds of destinations have in common.
type Options struct {
	Source copies.Source
	Moved  bool
	Mask   *copies.Mask
	// Cut is the number of the step that fails, with all later steps, as if the process were killed. The first step has
	// the number 1. 0 lets no step fail.
	Cut int
	// Repair is for a repair by [copies.Verify].
	Repair bool
}

// ErrCut is the error of a step that Options.Cut lets fail.
var ErrCut = errors.New("killed")

// CutContext is a copy whose context ends at its use number n, for Options.Cut of a kind that uses its context in each
// step.
func CutContext(d copies.Verifiable, n int) copies.Destination {
	if n == 0 {
		return d
	}
	c := &cutContext{Verifiable: d}
	c.left.Store(int64(n))
	return c
}

type cutContext struct {
	copies.Verifiable
	left atomic.Int64
}

// cut calls do with a context that counts its uses.
func (c *cutContext) cut(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := do(counted{ctx, &c.left, cancel}); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Apply applies a batch.
func (c *cutContext) Apply(ctx context.Context, b *copies.Batch) error {
	return c.cut(ctx, func(ctx context.Context) error { return c.Verifiable.Apply(ctx, b) })
}

// Unfilled returns the position of the copy after which rows lack values.
func (c *cutContext) Unfilled() (copies.Position, bool) {
	return c.Verifiable.(copies.Filler).Unfilled()
}

// Fill fills rows.
func (c *cutContext) Fill(ctx context.Context, f *copies.Filling) error {
	return c.cut(ctx, func(ctx context.Context) error { return c.Verifiable.(copies.Filler).Fill(ctx, f) })
}

// Mend repairs the copy.
func (c *cutContext) Mend(ctx context.Context, m *copies.Mending) error {
	return c.cut(ctx, func(ctx context.Context) error { return c.Verifiable.Mend(ctx, m) })
}

type counted struct {
	context.Context
	left   *atomic.Int64
	cancel context.CancelCauseFunc
}

func (c counted) Done() <-chan struct{} {
	if c.left.Add(-1) <= 0 {
		c.cancel(ErrCut)
	}
	return c.Context.Done()
}

// Small returns d with small batches, so that a test of few records has several.
func Small(d copies.Destination) copies.Destination {
	switch d := d.(type) {
	case copies.Verifiable:
		return smallCopy{d}
	case copies.Receiver:
		return smallReceiver{d}
	}
	return small{d}
}

var smallLimits = copies.Limits{Changes: 20, Bytes: 8 << 10}

type (
	small         struct{ copies.Destination }
	smallReceiver struct{ copies.Receiver }
	smallCopy     struct{ copies.Verifiable }
)

func (small) Limits() copies.Limits { return smallLimits }

func (smallReceiver) Limits() copies.Limits { return smallLimits }

func (smallCopy) Limits() copies.Limits { return smallLimits }

func (s smallCopy) Unfilled() (copies.Position, bool) { return s.Verifiable.(copies.Filler).Unfilled() }

func (s smallCopy) Fill(ctx context.Context, f *copies.Filling) error {
	return s.Verifiable.(copies.Filler).Fill(ctx, f)
}

// Copy is a copy of a source under test.
type Copy struct {
	*Source
	Kind
}

// Sync runs d until the copy is current. A change of o may be nil.
func (s *Source) Sync(ctx context.Context, d copies.Destination, change func(*copies.Options)) (copies.Progress, error) {
	o := copies.Options{Client: s.Client, Source: s.Is(), Destination: d, PageSize: 7, Attempts: 1}
	if change != nil {
		change(&o)
	}
	return copies.Run(ctx, o)
}

// run opens the copy and runs it in small batches.
func (c *Copy) run(t *testing.T, o Options, change func(*copies.Options)) (copies.Progress, error) {
	t.Helper()
	if o.Source == (copies.Source{}) {
		o.Source = c.Is()
	}
	d, err := c.Open(t, o)
	if err != nil {
		return copies.Progress{}, err
	}
	return c.Sync(t.Context(), Small(d), func(options *copies.Options) {
		options.Mask = o.Mask
		if change != nil {
			change(options)
		}
	})
}

// sync makes the copy current, and compares it with its source.
func (c *Copy) sync(t *testing.T) copies.Progress {
	t.Helper()
	p, err := c.run(t, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Current {
		t.Errorf("%+v; want a copy that is current", p)
	}
	c.check(t)
	return p
}

func (c *Copy) check(t *testing.T) {
	t.Helper()
	Equal(t, c.Tables(t), c.Read(t), c.Exact())
}

// Verify returns the names of what differs, sorted, and how many differences are left.
func (s *Source) Verify(t *testing.T, d copies.Destination, change func(*copies.Verification)) (names []string, left int64) {
	t.Helper()
	v := copies.Verification{
		Options: copies.Options{Client: s.Client, Source: s.Is(), Destination: d, PageSize: 50, Attempts: 20}, Folder: t.TempDir(),
		Name: func(d copies.Difference) error {
			names = append(names, fmt.Sprintf("%s %s %s", d.Fault, d.Type, d.ID))
			return nil
		},
	}
	if change != nil {
		change(&v)
	}
	found, err := copies.Verify(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names, found.Left
}

// Run tests a kind of destination. kind returns a new place for a copy.
func Run(t *testing.T, kind func(t *testing.T) Kind) {
	t.Parallel()
	for _, promise := range []struct {
		name string
		hold func(t *testing.T, c *Copy)
	}{
		{"whole", whole}, {"changes", changes}, {"killed", killed}, {"erased", erased}, {"project", project}, {"since", since},
		{"faults of the API", faults}, {"follows", follows}, {"a removed project", removedProject}, {"another source", anotherSource},
		{"masked", masked}, {"verified", verified}, {"lost history", lostHistory}, {"lost history of a first load", lostLoad}, {"lost for the most part", lostMost},
		{"lost by hand", lostByHand},
	} {
		t.Run(promise.name, func(t *testing.T) {
			t.Parallel()
			promise.hold(t, &Copy{NewSource(t), kind(t)})
		})
	}
}

// Hostile are answers in forms that a store may refuse or change.
var Hostile = []string{
	`{"a":"\u0000"}`, `{"a":"\ud800"}`, `{"a":1e200000}`, strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	`{"a":"\u00e4\ud83d\ude00"}`, `{"a":1e3,"a":2}`, `null`, `"\\u0000"`, ` [1.50] `, `{"a":"` + strings.Repeat("x", 20_000) + `"}`, `{"1e5":"é"}`, `{"<":"&>"}`,
}

// The first run copies the whole project, whatever the answers are. The next has nothing to do.
func whole(t *testing.T, c *Copy) {
	c.sync(t) // of nothing
	c.Fill(0, 30)
	for i, data := range Hostile {
		c.Put(Entry(fmt.Sprintf("odd_%d", i), i, data))
	}
	if p := c.sync(t); p.Changes != int64(90+len(Hostile)) {
		t.Errorf("%+v; want %d changes", p, 90+len(Hostile))
	}
	if p := c.sync(t); p.Changes != 0 {
		t.Errorf("%+v; want no changes", p)
	}
}

// Later runs apply updates, removals and records that come back, in one batch or in several.
func changes(t *testing.T, c *Copy) {
	c.Fill(0, 30)
	c.sync(t)
	c.Put(Entry("en_1", 900, `{"again":true}`))
	c.Remove(client.Erased, "en_2", "en_3", "never came")
	c.Remove(client.Purged, "en_4")
	c.Put(Entry("en_4", 901, `{"back":1}`), Event("en_4", 8), Event("en_4", 77), Entry("new", 902, `{}`))
	c.Remove(client.Purged, "new")
	if p := c.sync(t); p.Changes == 0 || p.Changes > 10 {
		t.Errorf("%d changes; want the new ones alone", p.Changes)
	}
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("en_%d", i))
	}
	c.Remove(client.Erased, all...)
	c.sync(t)
}

// A copy is exact, whichever step of a run was the last of its process.
func killed(t *testing.T, c *Copy) {
	c.Fill(0, 10)
	c.Define("emb_1", 2, client.Draft, 1)
	n := 1
	for step := 0; ; step++ {
		c.Fill(5*step, 20) // most of them again
		c.Remove(client.Purged, fmt.Sprintf("en_%d", 5*step+7), fmt.Sprintf("en_%d", step))
		c.Remove(client.Erased, fmt.Sprintf("en_%d", 5*step+9))
		_, err := c.run(t, Options{Cut: n}, nil)
		if err == nil {
			break
		}
		if step%3 == 2 { // otherwise a run that was killed follows another one
			c.sync(t)
		}
		n += 1 + n/3
	}
	if n < 4 {
		t.Errorf("a run has %d steps", n)
	}
	c.sync(t)
}

// canary is a text that a copy must not have.
const canary = "Ada-canary"

// Once a copy has passed the removal of an entry, nothing of the person is in the copy.
func erased(t *testing.T, c *Copy) {
	c.Fill(0, 30)
	c.Person("en_ada", canary)
	c.sync(t)
	if n := strings.Count(fmt.Sprint(c.Read(t)), canary); n < 5 {
		t.Errorf("the copy has the person %d times; want the contact of the entry and the event, the answer, the URL and the page", n)
	}
	c.Remove(client.Erased, "en_ada")
	c.sync(t)
	if text := fmt.Sprint(c.Read(t)) + c.Text(t); strings.Contains(text, canary) {
		t.Errorf("the copy still has the person: %.2000s", text)
	}
}

// A copy has the records without a feed as they are now. A key that may not read them changes nothing.
func project(t *testing.T, c *Copy) {
	c.Fill(0, 3)
	c.Define("emb_1", 12, client.Draft, 1)
	c.Define("emb/2", 1, client.Running, 1)
	c.sync(t)
	c.Define("emb_1", 13, client.Paused, 2)
	c.sync(t)
	for i, path := range []string{"/embeddables", "/experiments"} {
		before := c.Read(t)[path[1:]]
		c.Define("emb_1", 14+i, []client.ExperimentStatus{client.Running, client.Completed}[i], 3+i)
		c.API.Order(clienttest.Answer{Path: path, Status: 403, Code: client.CodeInsufficientScope, Always: true})
		if _, err := c.run(t, Options{}, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, c.Read(t)[path[1:]]); diff != "" {
			t.Errorf("a key without its scope: %s", diff)
		}
	}
	c.API.Order()
	c.sync(t)
}

// A new copy starts after a change, or with the next one. The later runs do so too.
func since(t *testing.T, c *Copy) {
	c.Fill(0, 3)
	start := c.Tables(t)
	run := func(changes int64) {
		t.Helper()
		if p, err := c.run(t, Options{}, func(o *copies.Options) { o.Query.After = "now" }); err != nil || p.Changes != changes {
			t.Errorf("%+v, %v; want %d changes", p, err, changes)
		}
	}
	run(0)
	c.Fill(3, 2)
	run(6)
	want := c.Tables(t)
	for name, rows := range start {
		for key := range rows {
			delete(want[name], key)
		}
	}
	Equal(t, want, c.Read(t), c.Exact())
}

// Answers of the API that fail, or break off, are read again. A run that fails for good leaves the copy to the next run.
func faults(t *testing.T, c *Copy) {
	c.Fill(0, 20)
	const feed = "entries-changes"
	c.API.Order(clienttest.Answer{Path: feed, Status: 503}, clienttest.Answer{Path: feed, CutAfter: 700}, clienttest.Answer{Path: feed, Status: 429, Code: client.CodeRateLimited},
		clienttest.Answer{Path: feed, CutAfter: 2900})
	c.sync(t)
	c.Fill(10, 20)
	c.API.Order(clienttest.Answer{Path: "cursor", Status: 410, Code: client.CodeInvalidParameter, Always: true})
	_, err := c.run(t, Options{}, nil)
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != 410 {
		t.Errorf("%v; want the answer 410", err)
	}
	c.API.Order()
	c.sync(t)
}

// A run that follows the feed gets later changes too, until its context ends.
func follows(t *testing.T, c *Copy) {
	c.Fill(0, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d, err := c.Open(t, Options{Source: c.Is()})
	if err != nil {
		t.Fatal(err)
	}
	batches := 0
	_, err = c.Sync(ctx, Small(d), func(o *copies.Options) {
		o.Follow, o.Progress = true, func(p copies.Progress) {
			switch {
			case p.Current && batches == 0:
				batches++
				c.Fill(3, 3)
			case p.Current && p.Changes >= 18:
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.check(t)
}

// The copy of a project that the source does not have any more stays as it is.
func removedProject(t *testing.T, c *Copy) {
	c.Fill(0, 3)
	c.sync(t)
	before := c.Read(t)
	c.API.Update(func(d *clienttest.Data) { d.Changes = nil })
	if _, err := c.run(t, Options{}, nil); !errors.Is(err, copies.ErrRemoved) {
		t.Errorf("%v; want that the project was removed", err)
	}
	if d, ok := c.verifiable(t, true); ok {
		_, err := copies.Verify(t.Context(), copies.Verification{
			Options: copies.Options{Client: c.Client, Source: c.Is(), Destination: d, PageSize: 7, Attempts: 1}, Folder: t.TempDir(), Repair: true,
			Name: func(copies.Difference) error { return nil },
		})
		if !errors.Is(err, copies.ErrRemoved) {
			t.Errorf("repair: %v; want that the project was removed", err)
		}
	}
	if diff := cmp.Diff(before, c.Read(t)); diff != "" {
		t.Error(diff)
	}
}

// A copy of another project, or of the project at another address, is refused by name and stays as it is.
func anotherSource(t *testing.T, c *Copy) {
	c.Fill(0, 3)
	c.sync(t)
	before := c.Read(t)
	other, moved := c.Is(), c.Is()
	other.ProjectID, moved.URL = "pr_2", strings.Replace(moved.URL, "127.0.0.1", "localhost", 1)
	if _, err := c.run(t, Options{Source: other}, nil); err == nil || !strings.Contains(err.Error(), "of project") || !strings.Contains(err.Error(), Project) {
		t.Errorf("another project: %v", err)
	}
	if _, messages := before["removals"]; !messages { // messages have no address
		if _, err := c.run(t, Options{Source: moved}, nil); err == nil || !strings.Contains(err.Error(), "give --moved") {
			t.Errorf("another address: %v", err)
		}
	}
	if diff := cmp.Diff(before, c.Read(t)); diff != "" {
		t.Error(diff)
	}
	c.Fill(3, 1)
	if _, err := c.run(t, Options{Source: moved, Moved: true}, nil); err != nil {
		t.Errorf("moved: %v", err)
	}
	c.check(t)
}

var maskSecret = []byte("a secret of the hashes")

// Hashed returns the text that the mask of the suite gives in place of JSON.
func hashed(text string) string {
	h := hmac.New(sha256.New, maskSecret)
	h.Write([]byte(text))
	return fmt.Sprintf("%x", h.Sum(nil))
}

func mask(t *testing.T, secret []byte) *copies.Mask {
	t.Helper()
	m, err := copies.NewMask([]string{"contact_id", "url", "definition", "entry_data.email", "entry_data.a.b", "timestamp"}, []string{"page_key", "entry_data.phone"}, secret)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// No copy gets a value that is left out or hashed, in whatever way the value is written. All else stays.
func masked(t *testing.T, c *Copy) {
	c.Define("emb_1", 1, client.Draft, 1)
	phone := `"` + hashed(`"`+canary+`"`) + `"`
	want := map[string]string{}
	for i, d := range []struct{ in, want string }{
		{`{"email":"Ada-canary","n":1}`, `{"n":1}`},
		{`{ "n" : 1.50 , "email":"Ada-canary" }`, `{ "n" : 1.50 }`},
		{`{"email":"Ada-canary"}`, `{}`},
		{`{"\u0065mai\u006c":"Ada-canary","z":"\u00e9"}`, `{"z":"\u00e9"}`},
		{`{"email":"x Ada-canary","n":1e400,"email":["Ada-canary"]}`, `{"n":1e400}`},
		{`{"email":"Ada-canary","n":"\u0000\ud800"}`, `{"n":"\u0000\ud800"}`},
		{`{"in":{"email":"stays"},"a.b":"Ada-canary","a":{"b":1}}`, `{"in":{"email":"stays"},"a":{"b":1}}`},
		{`{"phone": "\u0041da-canary" ,"n":1}`, `{"phone": ` + phone + ` ,"n":1}`},
		{`{"phone":{"b":[1.0, 2],"a":1}}`, `{"phone":"` + hashed(`{"a":1,"b":[1.0,2]}`) + `"}`},
		{`{"phone":null}`, `{"phone":null}`},
		{`["Ada-canary"]`, `{}`},
		{`"Ada-canary"`, `{}`},
		{`{"email":` + strings.Repeat("[", 9_990) + `"Ada-canary"` + strings.Repeat("]", 9_990) + `}`, `{}`},
		{`{}`, `{}`},
	} {
		e := Entry(fmt.Sprintf("en_%d", i), i, d.in)
		e.ContactID = canary
		c.Put(e)
		want[e.EntryID] = d.want
	}
	view := Event("en_1", 1)
	view.ContactID, view.URL, view.PageKey = canary, new("https://example.com/"+canary), new(canary)
	c.Put(view)
	m := mask(t, maskSecret)
	if _, err := c.run(t, Options{Mask: m}, nil); err != nil {
		t.Fatal(err)
	}
	got, source := c.Read(t), c.Tables(t)
	if text := fmt.Sprint(got) + c.Text(t); strings.Contains(text, canary) {
		t.Errorf("the copy has the person: %.4000s", text)
	}
	for table, columns := range map[string][]string{"entries": {"contact_id"}, "events": {"contact_id", "url", "timestamp"}, "embeddables": {"json_string_prod"}, "embeddable_versions": {"json_string"}} {
		for key, r := range got[table] {
			for _, name := range columns {
				if r[name] != nil {
					t.Errorf("%s of %s is %v", name, key, r[name])
				}
				delete(r, name)
				delete(source[table][key], name)
			}
		}
	}
	for _, r := range source["entries"] {
		r["entry_data"] = want[r["entry_id"].(string)]
	}
	for _, r := range source["events"] {
		r["page_key"] = hashed(fmt.Sprintf("%q", r["page_key"]))
	}
	Equal(t, source, got, c.Exact())
	if d, ok := c.verifiable(t, false, m); ok {
		if names, left := c.Verify(t, d, func(v *copies.Verification) { v.Mask = m }); left != 0 {
			t.Errorf("differences %q", names)
		}
	}
	for _, other := range []*copies.Mask{nil, mask(t, []byte("another secret than before"))} {
		if _, err := c.run(t, Options{Mask: other}, nil); err == nil || !strings.Contains(err.Error(), "give --without, --hash and the secret as before") || strings.Contains(err.Error(), "another secret") {
			t.Errorf("another mask: %v", err)
		}
	}
}

// verifiable returns the copy if its kind can be verified.
func (c *Copy) verifiable(t *testing.T, repair bool, m ...*copies.Mask) (copies.Destination, bool) {
	t.Helper()
	o := Options{Source: c.Is(), Repair: repair}
	if len(m) > 0 {
		o.Mask = m[0]
	}
	d, err := c.Open(t, o)
	if err != nil {
		t.Fatal(err)
	}
	_, ok := d.(copies.Verifiable)
	return d, ok
}

// FillVerified fills the source of the promise "verified", and copies it.
func (c *Copy) fillVerified(t *testing.T) {
	c.Define("emb_1", 2, client.Running, 1)
	c.Fill(0, 30)
	c.Put(Entry("odd", 1, `{"a":"\u0000","b":1e200000}`), Entry("numbers", 1, `{"b":1.50,"a":1e3,"a":[1,  2]}`), Entry("misfit", 1, `{"n":"x","text":"t"}`), Of("emb_2", Entry("other", 1, `{"b":1.50}`)))
	c.sync(t)
	c.Remove(client.Purged, "en_28", "en_29")
	c.Put(Entry("en_28", 901, `{"back":1}`))
	c.sync(t)
}

// A verification names the differences of an injured copy, and no others. A repair mends them.
func verified(t *testing.T, c *Copy) {
	kind, ok := c.Kind.(Injured)
	if !ok {
		t.Skip("copies of this kind are not verified")
	}
	c.fillVerified(t)
	verify := func(name string, repair bool, want []string) {
		t.Helper()
		d, _ := c.verifiable(t, repair)
		names, left := c.Verify(t, d, func(v *copies.Verification) { v.Repair = repair })
		if most := int64(len(want)); !slices.Equal(names, want) || !repair && left != most || repair && left != 0 {
			t.Fatalf("%s: %d are left, -want +got: %s", name, left, cmp.Diff(want, names))
		}
		status, err := d.(copies.Verifiable).Status(t.Context())
		if err != nil || status.Verified.Differences != left || status.Verified.At.IsZero() {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
	verify("sound", false, nil)
	for _, group := range kind.Injuries(t) {
		var names, want []string
		for _, injury := range group {
			names, want = append(names, injury.Name), append(want, injury.Do(t)...)
		}
		slices.Sort(want)
		verify(strings.Join(names, ", "), true, slices.Compact(want)) // which compares again after the repair
		c.check(t)
	}
	verify("mended", false, nil)

	// Sources write with every fourth request, and another process copies meanwhile.
	var requests atomic.Int64
	fake := c.API.Config.Handler
	c.API.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(requests.Add(1)); n%4 == 0 && n < 1000 {
			c.Fill(n%30, 2)
			c.Remove(client.Purged, fmt.Sprintf("en_%d", n%40))
		}
		fake.ServeHTTP(w, r)
	})
	for range 2 {
		copied := make(chan error, 1)
		d, _ := c.verifiable(t, false)
		go func() {
			_, err := c.Sync(t.Context(), Small(d), nil)
			copied <- err
		}()
		checked, _ := c.verifiable(t, false)
		names, _ := c.Verify(t, checked, nil)
		if err := <-copied; err != nil || len(names) > 0 {
			t.Errorf("%v, invented: %s", err, strings.Join(names, ", "))
		}
	}
	c.API.Config.Handler = fake
	c.sync(t)
}
