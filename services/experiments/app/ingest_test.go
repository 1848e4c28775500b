package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// history returns the changes of an experiment's status, without the times when they were recorded.
func history(t *testing.T, s *servicetest.Service, project, id string) []string {
	t.Helper()
	a := s.Get(t, "", "/projects/"+project+"/experiments/"+id+"/history")
	if a.Status != 200 {
		t.Fatalf("history of %s: %d %s", id, a.Status, a.Body)
	}
	var list []object
	a.JSON(t, &list)
	var changes []string
	for _, c := range list {
		if recorded, _ := c["recorded_at"].(string); len(c) != 3 || recorded < "2026" {
			t.Errorf("a change: %v", c)
		}
		changes = append(changes, fmt.Sprint(c["changed_at"], " ", c["status"]))
	}
	return changes
}

func TestIngestRules(t *testing.T) {
	t.Parallel()
	s, project := shared(t)
	e := func(updated int, name, status string) object {
		return with(with(newExperiment(project, "ex_1", 1, status), "updated_at", at(updated)), "name", name)
	}
	var want []string
	for _, step := range []struct {
		name             string
		send             []any
		stored, existing int
		want             string // the name that is stored afterwards
		changes          []string
	}{
		{"new", []any{e(5, "1", "draft")}, 1, 0, "1", []string{at(5) + " draft"}},
		{"the same", []any{e(5, "1", "draft")}, 0, 1, "1", nil},
		{"older, another status", []any{e(4, "2", "running")}, 0, 1, "1", nil},
		{"equal, other content", []any{e(5, "3", "draft")}, 1, 0, "3", nil},
		{"equal, another status", []any{e(5, "3", "running")}, 1, 0, "3", []string{at(5) + " running"}},
		{"newer", []any{e(6, "4", "running")}, 1, 0, "4", nil},
		{"any status after any", []any{e(7, "4", "completed"), e(8, "4", "draft")}, 2, 0, "4", []string{at(7) + " completed", at(8) + " draft"}},
		{"to none and back, in one body", []any{with(e(9, "5", "x"), "status", nil), e(9, "5", "draft"), e(9, "5", "draft"), e(8, "6", "paused")}, 2, 2, "5",
			[]string{at(9) + " <nil>", at(9) + " draft"}},
		{"sent again as a whole", []any{e(5, "1", "draft"), e(9, "5", "draft")}, 0, 2, "5", nil},
		{"an array is null or empty", []any{with(e(9, "5", "draft"), "flow_ids", []any{}), with(e(9, "5", "draft"), "flow_ids", nil)}, 2, 0, "5", nil},
	} {
		first := 0
		if step.name == "new" {
			first = 1
		}
		in := s.Ingest(t, "experiments", step.send...)
		var got object
		s.Get(t, "", "/projects/"+project+"/experiments/ex_1").JSON(t, &got)
		if in.Stored != step.stored || in.Changed != step.stored-first || in.Existing != step.existing || in.Rejected != 0 || got["name"] != step.want {
			t.Errorf("%s: %+v, name %v; want %d stored, %d existing, %s", step.name, in, got["name"], step.stored, step.existing, step.want)
		}
		want = append(want, step.changes...)
		if diff := cmp.Diff(want, history(t, s, project, "ex_1")); diff != "" {
			t.Errorf("%s: the history: %s", step.name, diff)
		}
	}
}

// TestHistoryEqualsModel checks that batches of any size lead to the same history as records that are stored one by
// one.
func TestHistoryEqualsModel(t *testing.T) {
	t.Parallel()
	s, project := shared(t)
	random := rand.New(rand.NewPCG(1, 2))
	statuses := []any{"draft", "running", "paused", "winner_picked", "completed", "discarded", nil}
	type state struct {
		updated int
		status  any
	}
	stored, want := map[string]state{}, map[string][]string{}
	for range 60 {
		var batch []any
		for range 1 + random.IntN(8) {
			id, next := fmt.Sprintf("ex_%d", random.IntN(4)), state{random.IntN(50), statuses[random.IntN(len(statuses))]}
			batch = append(batch, with(with(newExperiment(project, id, 1, "x"), "updated_at", at(next.updated)), "status", next.status))
			old, there := stored[id]
			if there && next.updated < old.updated {
				continue
			}
			if !there || old.status != next.status {
				want[id] = append(want[id], fmt.Sprint(at(next.updated), " ", next.status))
			}
			stored[id] = next
		}
		s.MustIngest(t, "experiments", batch...)
	}
	for id := range stored {
		if diff := cmp.Diff(want[id], history(t, s, project, id)); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

// TestHostileRecords sends records that are hard to store between two good ones. Each is stored and returned byte for
// byte, or rejected by its line. The good ones are stored.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	s, project := shared(t)
	quote := func(text string) string { b, _ := json.Marshal(text); return string(b) }
	// line returns an experiment as text, with one field in addition to the required ones.
	line := func(field, value string) string {
		return fmt.Sprintf(`{"project_id":"`+project+`","id":"x","experimentId":"x","flowId":"f","created_at":"2022-01-01T00:00:00Z","updated_at":"2022-01-01T00:00:00Z",%q:%s}`, field, value)
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name, field, value string
		code               string // of the rejection; empty if the record is stored
		want               any    // the field's value that is returned
	}{
		{"white space and numbers within", "attachments", quote(" [ {\"size\":9007199254740993, \"size\":1.10} ]\n"), "", " [ {\"size\":9007199254740993, \"size\":1.10} ]\n"},
		{"escapes within", "variants", quote(`{"a":"\u0000 \ud800 \" \\"}`), "", `{"a":"\u0000 \ud800 \" \\"}`},
		{"an empty array", "attachments", `"[]"`, "", "[]"},
		{"an empty object", "variants", `"{}"`, "", "{}"},
		{"10,000 deep", "attachments", quote(deep(10_000)), "", deep(10_000)},
		{"1 MB", "hypothesis", quote(strings.Repeat("ü\\\"\n", 250_000)), "", strings.Repeat("ü\\\"\n", 250_000)},
		{"texts of all kinds", "impact_metrics", `["","\"\\\n\t\u0001","é\u2028\ud83d\ude00","a,b","NULL","{}"]`, "", []any{"", "\"\\\n\t\u0001", "é\u2028\U0001F600", "a,b", "NULL", "{}"}},
		{"one text twice", "flow_ids", `["a","a"]`, "", []any{"a", "a"}},
		{"an unknown winner", "winner_variant", `"nobody"`, "", "nobody"},

		{"no array", "attachments", `"{}"`, "invalid_field", nil},
		{"a scalar", "attachments", `"1"`, "invalid_field", nil},
		{"no object", "variants", `"[]"`, "invalid_field", nil},
		{"an array and not its text", "attachments", `[]`, "invalid_field", nil},
		{"a text for texts", "impact_metrics", `"conversion"`, "invalid_field", nil},
		{"a number among texts", "impact_metrics", `["a",1]`, "invalid_field", nil},
		{"a null among texts", "flow_ids", `["a",null]`, "invalid_field", nil},
		{"NUL among texts", "flow_ids", `["a\u0000"]`, "invalid_field", nil},
		{"no such status", "status", `"done"`, "invalid_field", nil},
		{"empty status", "status", `""`, "invalid_field", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.Exec(t, `DELETE FROM experiments WHERE project_id = $1`, project)
			s.Exec(t, `DELETE FROM status_changes WHERE project_id = $1`, project)
			in := s.Ingest(t, "experiments", newExperiment(project, "before", 1, "draft"), line(tt.field, tt.value), "", newExperiment(project, "after", 1, "draft"))
			if tt.code != "" {
				if in.Stored != 2 || in.Rejected != 1 || len(in.Rejects) != 1 || in.Rejects[0].Line != 2 || in.Rejects[0].Code != tt.code || len(in.Rejects[0].Message) > 1000 {
					t.Errorf("%+v, want line 2 rejected as %s", in, tt.code)
				}
				return
			}
			if in.Stored != 3 || in.Rejected != 0 {
				t.Fatalf("%+v", in)
			}
			var got object
			s.Get(t, "", "/projects/"+project+"/experiments/x").JSON(t, &got)
			if diff := cmp.Diff(tt.want, got[tt.field]); diff != "" {
				t.Errorf("came back otherwise: %.300s", diff)
			}
			list, _ := s.List(t, "", "/projects/"+project+"/experiments")
			if diff := cmp.Diff(tt.want, list[2][tt.field]); diff != "" {
				t.Errorf("is listed otherwise: %.300s", diff)
			}
		})
	}
	for name, record := range map[string]object{
		"ids that differ":  with(newExperiment(project, "ex_1", 1, "draft"), "experimentId", "ex_2"),
		"no experimentId":  with(newExperiment(project, "ex_1", 1, "draft"), "experimentId", servicetest.Absent),
		"null flowId":      with(newExperiment(project, "ex_1", 1, "draft"), "flowId", nil),
		"no project":       with(newExperiment(project, "ex_1", 1, "draft"), "project_id", servicetest.Absent),
		"no updated_at":    with(newExperiment(project, "ex_1", 1, "draft"), "updated_at", nil),
		"year 10000":       with(newExperiment(project, "ex_1", 1, "draft"), "created_at", "10000-01-01T00:00:00Z"),
		"id of 257 bytes":  with(newExperiment(project, "ex_1", 1, "draft"), "id", strings.Repeat("x", 257)),
		"number for an id": with(newExperiment(project, "ex_1", 1, "draft"), "id", 7),
	} {
		if in := s.Ingest(t, "experiments", record); in.Rejected != 1 || in.Rejects[0].Message == "" {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

// TestConcurrentIngest sends the same records in many orders at once. All requests succeed, and each record and each
// change is stored once.
func TestConcurrentIngest(t *testing.T) {
	t.Parallel()
	s, project := shared(t)
	const records, senders = 30, 6
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			var list []any
			for _, n := range random.Perm(records) {
				e := newExperiment(project, fmt.Sprintf("ex_%02d", n), n, "draft")
				list = append(list, e, with(with(e, "status", "running"), "updated_at", at(100)))
			}
			if in := s.Ingest(t, "experiments", list...); in.Rejected != 0 {
				t.Errorf("%+v", in)
			}
		})
	}
	all.Wait()
	list, _ := s.List(t, "", "/projects/"+project+"/experiments?status=running")
	if len(list) != records {
		t.Fatalf("%d experiments run", len(list))
	}
	for n := range records {
		want := []string{at(n) + " draft", at(100) + " running"}
		if diff := cmp.Diff(want, history(t, s, project, fmt.Sprintf("ex_%02d", n))); diff != "" {
			t.Errorf("ex_%02d: %s", n, diff)
		}
	}
}
