package copytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
	"github.com/lectern-dev/lectern/copies"
)

// backup returns two functions: restore takes the source back to this moment. After know, the source knows which numbers it
// has lost, as a source that is written again does.
func (s *Source) backup() (restore, know func()) {
	var saved clienttest.Data
	s.API.Update(func(d *clienttest.Data) { saved = *d })
	lost := clienttest.Stretch{After: last(saved)}
	restore = func() {
		s.API.Update(func(d *clienttest.Data) {
			lost.Until = last(*d) + 1000
			*d = saved
		})
	}
	know = func() {
		s.API.Update(func(d *clienttest.Data) { d.Lost = append(slices.Clip(d.Lost), lost) })
	}
	return restore, know
}

func last(d clienttest.Data) int64 {
	if len(d.Changes) == 0 {
		return 0
	}
	return d.Changes[len(d.Changes)-1].Seq
}

// mends reports whether the copy is mended, or its receiver is told, when its source has lost changes. A copy of another kind
// stops.
func (c *Copy) mends(t *testing.T) bool {
	t.Helper()
	d, verifiable := c.verifiable(t, false)
	_, receiver := d.(copies.Receiver)
	return verifiable || receiver
}

// A copy is exact after its source has lost changes, whichever step of a run was the last of its process. The rows that only
// the copy has are put aside, except those that it knows to be removed, until their entry is erased.
func lostHistory(t *testing.T, c *Copy) {
	c.Define("emb_1", 2, client.Running, 1)
	c.Fill(0, 30)
	c.Remove(client.Purged, "en_29")
	c.sync(t)
	var aside []string
	for step, n := 0, 1; ; step, n = step+1, n+1+n/2 {
		restore, know := c.backup()
		written := step%2 == 1
		resent := Entry("en_1", 800+step, fmt.Sprintf(`{"resent":%d}`, step))
		c.Put(resent, Entry(fmt.Sprint("new_", step), 800, `{"lost":1}`), Event(fmt.Sprint("new_", step), 1), Event("en_4", 100+step),
			Entry(fmt.Sprint("brief_", step), 800, `{"lost":1}`), Entry("en_7", 800+step, fmt.Sprintf(`{"lost":%d}`, step)))
		c.Person("en_ada", canary)
		if step < 2 {
			c.sync(t) // so that files keep what the next batch purges
		}
		c.Remove(client.Purged, "en_3", fmt.Sprint("brief_", step))
		c.Remove(client.Erased, "en_2")
		c.sync(t)
		restore()
		aside = append(aside, fmt.Sprint("new_", step), fmt.Sprint("new_", step, " event"), "en_4 event", fmt.Sprintf(`en_7 {"lost":%d}`, step), "en_ada", "en_ada event")
		if written {
			know()
			c.Put(resent, Entry("en_5", 800+step, `{"after":1}`))
			c.Remove(client.Purged, fmt.Sprint("en_", 8+step))
		} else {
			aside = append(aside, fmt.Sprintf(`en_1 {"resent":%d}`, step))
		}
		if !c.mends(t) {
			c.checkStops(t)
			know()
			c.Put(resent)
			c.checkStops(t)
			return
		}
		if d, ok := c.verifiable(t, false); ok && step == 0 {
			if names, left := c.Verify(t, d, nil); left == 0 || !slices.Contains(names, "extra entry new_0") || !slices.Contains(names, "missing entry en_2") {
				t.Errorf("%d are left: %q", left, names)
			} else if slices.Contains(names, "extra entry_removed brief_0") != slices.Contains(names, "extra entry brief_0") {
				t.Errorf("the row of a removal that goes would come back: %q", names)
			}
		}
		_, err := c.run(t, Options{Cut: n}, nil)
		if step%3 == 2 {
			_, _ = c.run(t, Options{Cut: n/2 + 1}, nil)
		}
		c.sync(t)
		if !written {
			know()
		}
		if err == nil {
			break
		}
	}
	c.checkAside(t, aside)
	c.Remove(client.Erased, "en_ada")
	c.sync(t)
	if text := fmt.Sprint(c.Read(t)) + c.Text(t); strings.Contains(text, canary) {
		t.Errorf("the copy still has the person: %.2000s", text)
	}
	c.checkAside(t, slices.DeleteFunc(aside, func(name string) bool { return strings.HasPrefix(name, "en_ada") }))
}

// checkStops checks that a run fails because changes are lost, and leaves the copy as it is.
func (c *Copy) checkStops(t *testing.T) {
	t.Helper()
	before := c.Read(t)
	if _, err := c.run(t, Options{}, nil); client.Code(err) != client.CodeHistoryLost || !strings.Contains(err.Error(), "has lost its changes after") {
		t.Errorf("%v; want that changes are lost", err)
	}
	if diff := cmp.Diff(before, c.Read(t)); diff != "" {
		t.Error(diff)
	}
}

// checkAside checks that exactly the records with the names in want are aside. A name is an id, or an id and the answers, or
// an id and "event".
func (c *Copy) checkAside(t *testing.T, want []string) {
	t.Helper()
	kind, ok := c.Kind.(Injured)
	if !ok {
		return
	}
	found := map[string]bool{}
	for _, line := range kind.Aside(t) {
		var e client.Entry
		strict := func(record any) error {
			d := json.NewDecoder(strings.NewReader(line))
			d.DisallowUnknownFields()
			return d.Decode(record)
		}
		if strict(&e) != nil {
			var event client.NewEvent
			if err := strict(&event); err != nil || event.Timestamp.IsZero() {
				t.Errorf("%v: %s", err, line)
			}
			found[event.EntryID+" event"] = true
			continue
		}
		if e.ProjectID != Project || e.UpdatedAt.IsZero() {
			t.Errorf("%+v of %s", e, line)
		}
		name := e.EntryID
		if name == "en_1" || name == "en_7" {
			name += " " + strings.ReplaceAll(e.Data, " ", "")
		}
		found[name] = true
	}
	all := map[string]bool{}
	for _, name := range want {
		all[name] = true
	}
	if diff := cmp.Diff(all, found); diff != "" {
		t.Errorf("aside, -want +got: %s", diff)
	}
}

// A source loses changes that a copy has in the middle of its first load.
func lostLoad(t *testing.T, c *Copy) {
	if !c.mends(t) {
		t.Skip("copies of this kind stop")
	}
	c.Fill(0, 20)
	restore, know := c.backup()
	c.Fill(20, 15)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d, err := c.Open(t, Options{Source: c.Is()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Sync(ctx, Small(d), func(o *copies.Options) {
		o.Progress = func(p copies.Progress) {
			if p.Seq > 610 {
				cancel()
			}
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want a load that is not at its end", err)
	}
	restore()
	know()
	c.Fill(5, 10)
	c.sync(t)
}

// A copy that would lose over half of its rows stops, and a repair goes on.
func lostMost(t *testing.T, c *Copy) {
	if _, ok := c.verifiable(t, false); !ok {
		t.Skip("copies of this kind are not mended")
	}
	c.Fill(0, 4)
	restore, know := c.backup()
	c.Fill(4, 5)
	c.sync(t)
	before := c.Read(t)
	restore()
	know()
	c.Fill(30, 1)
	if _, err := c.run(t, Options{}, nil); client.Code(err) != client.CodeHistoryLost || !strings.Contains(err.Error(), "15 of the copy's 27 rows") || !strings.Contains(err.Error(), "--repair") {
		t.Errorf("%v; want that over half of the rows would go", err)
	}
	if diff := cmp.Diff(before, c.Read(t)); diff != "" {
		t.Error(diff)
	}
	d, _ := c.verifiable(t, true)
	var notes []string
	if _, left := c.Verify(t, d, func(v *copies.Verification) {
		v.Repair, v.Note = true, func(text string) { notes = append(notes, text) }
	}); left != 0 {
		t.Errorf("%d are left", left)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "has lost its changes after") {
		t.Errorf("%q", notes)
	}
	c.sync(t)
}

// The source counts changes as lost that it still has, as after lectern restored --to. A copy reads them once more.
func lostByHand(t *testing.T, c *Copy) {
	if _, ok := c.verifiable(t, false); !ok {
		t.Skip("copies of this kind are not mended")
	}
	c.Fill(0, 10)
	c.Fill(8, 5)
	c.Remove(client.Purged, "en_1", "en_9")
	c.sync(t)
	c.API.Update(func(d *clienttest.Data) { d.Lost = []clienttest.Stretch{{After: 300, Until: last(*d) + 1000}} })
	c.Fill(20, 1)
	d, err := c.Open(t, Options{Source: c.Is()})
	if err != nil {
		t.Fatal(err)
	}
	// No page ends between the lost numbers.
	if _, err := c.Sync(t.Context(), d, func(o *copies.Options) { o.PageSize = 1000 }); err != nil {
		t.Fatal(err)
	}
	c.check(t)
	if names, left := c.Verify(t, d, func(v *copies.Verification) { v.PageSize = 1000 }); left != 0 {
		t.Errorf("differences %q", names)
	}
	c.checkAside(t, nil)
}
