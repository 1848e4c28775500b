package renewal_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/renewal"
)

// state is a State whose times are seconds from now. A nil time is zero.
type state struct {
	Request, First, Refresh, Fault string
	Expires, Next, Claimed         *int
	Failures                       int
}

// TestPlan runs the table of cases. A test of the console runs the cases in which a user waits.
func TestPlan(t *testing.T) {
	text, err := os.ReadFile("testdata/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		State  state
		Spec   renewal.Spec
		Answer *struct {
			Refresh, Fault string
			Life           int
			Refused        bool
		}
		Send  *string
		Store *state
		Wait  int
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(seconds *int) (t time.Time) {
		if seconds != nil {
			t = now.Add(time.Duration(*seconds) * time.Second)
		}
		return t
	}
	of := func(s state) renewal.State {
		return renewal.State{
			Request: s.Request, First: s.First, Refresh: s.Refresh, Fault: s.Fault, Failures: s.Failures,
			ExpiresAt: at(s.Expires), NextAt: at(s.Next), ClaimedAt: at(s.Claimed),
		}
	}
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			var answer *renewal.Answer
			if a := tt.Answer; a != nil {
				answer = &renewal.Answer{Refresh: a.Refresh, Life: time.Duration(a.Life) * time.Second, Fault: a.Fault, Refused: a.Refused}
			}
			want := renewal.Step{Wait: time.Duration(tt.Wait) * time.Second}
			if tt.Send != nil {
				want.Send, want.Token = true, *tt.Send
			}
			if tt.Store != nil {
				want.Store = of(*tt.Store)
			}
			if diff := cmp.Diff(want, renewal.Plan(of(tt.State), now, tt.Spec, answer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
