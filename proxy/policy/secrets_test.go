package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/secret"
)

// TestFormerValues replaces the value of a credential. The endpoint keeps a former value for 24 hours, and no more values
// than its limit.
func TestFormerValues(t *testing.T) {
	// Each sleep advances the clock of the bubble, and takes no time.
	synctest.Test(t, func(t *testing.T) {
		var store policy.Store
		var first *policy.Endpoint
		var known []policy.Former
		check := func(when string, want ...string) {
			t.Helper()
			var got []string
			first.Secrets().Derive(func(values [][]byte) any { return values })
			for _, value := range first.Secrets().Derive(nil).([][]byte) {
				got = append(got, string(value))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		replace := func(values ...string) {
			t.Helper()
			e := &policy.Endpoint{Name: "web", Former: known}
			for i, value := range values {
				e.Credentials = append(e.Credentials, &policy.Credential{ID: fmt.Sprintf("cred_%d", i), Value: secret.New([]byte(value))})
			}
			s, err := policy.NewSnapshot([]*policy.Endpoint{e}, e.Credentials)
			if err != nil {
				t.Fatal(err)
			}
			if store.Replace(s); first == nil {
				first = e
			}
		}
		replace("value-one", "short")
		check("at first", "value-one")
		time.Sleep(time.Hour)
		replace("value-two")
		check("after a rotation", "value-two", "value-one")
		time.Sleep(time.Hour)
		replace("value-one")
		check("after the way back", "value-one", "value-two")
		before := first.Secrets()
		replace("value-one")
		if first.Secrets() != before {
			t.Error("a change of nothing made a new search")
		}
		time.Sleep(policy.FormerLife - time.Second)
		replace("value-one")
		check("before the end of the time", "value-one", "value-two")
		time.Sleep(time.Second)
		replace()
		check("after the last one was taken off", "value-one")
		time.Sleep(policy.FormerLife)
		replace()
		check("a day later")
		known = []policy.Former{{Value: secret.New([]byte("value-six")), Until: time.Now().Add(time.Minute)}, {Value: secret.New([]byte("value-five")), Until: time.Now().Add(time.Second)}}
		replace("value-five")
		check("with values known from outside", "value-five", "value-six")
		replace("value-six")
		check("with a known end", "value-six", "value-five")
		time.Sleep(time.Second)
		replace("value-six")
		check("after that end", "value-six")
		known = nil
		replace()
		time.Sleep(policy.FormerLife)
		for i := range policy.MaxFormer + 2 {
			replace(fmt.Sprintf("value-%03d", i))
		}
		if got := first.Secrets().Derive(func(values [][]byte) any { return values }).([][]byte); len(got) != policy.MaxFormer+1 || string(got[0]) != "value-065" || string(got[1]) != "value-001" {
			t.Errorf("%d values, from %s", len(got), got[:2])
		}
	})
}
