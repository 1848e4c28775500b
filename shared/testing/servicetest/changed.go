package servicetest

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CheckChanges checks the numbers of the changes of a project's list at path, whose records have an id in the field id.
// put stores the record with an id. The records are in table, and the numbers in the table numbers. The list must be
// empty, and ordered by id.
func CheckChanges(t *testing.T, s *Service, key, path, id, table, numbers string, put func(id string)) {
	t.Helper()
	ask := func(query, match string) Answer {
		return s.Do(t, Request{Path: path + query, Key: key, Headers: map[string]string{"If-None-Match": match}})
	}
	newest := func() (number int64, tag string) {
		a := ask("", "")
		number, err := strconv.ParseInt(a.Header.Get("X-Last-Seq"), 10, 64)
		if err != nil || a.Status != http.StatusOK || a.Header.Get("ETag") == "" {
			t.Fatalf("%d %v, ETag %q", a.Status, err, a.Header.Get("ETag"))
		}
		return number, a.Header.Get("ETag")
	}
	after := func(number int64, want ...string) {
		t.Helper()
		list, _ := s.List(t, key, fmt.Sprintf("%s?changed_after=%d", path, number))
		if diff := cmp.Diff(append([]string{}, want...), append([]string{}, Column(list, id)...)); diff != "" {
			t.Errorf("changed after %d: %s", number, diff)
		}
	}
	lost := func(number int64, after int64, until string) {
		t.Helper()
		a := ask(fmt.Sprintf("?changed_after=%d", number), "")
		var body struct {
			Error        struct{ Code string }
			After, Until *int64
		}
		a.JSON(t, &body)
		got := "null"
		if body.Until != nil {
			got = strconv.FormatInt(*body.Until, 10)
		}
		if a.Status != http.StatusGone || body.Error.Code != "history_lost" || body.After == nil || *body.After != after || got != until {
			t.Errorf("changed after %d: %d %s; want a loss after %d until %s", number, a.Status, a.Body, after, until)
		}
	}

	if zero, _ := newest(); zero != 0 {
		t.Errorf("the number of an empty list is %d", zero)
	}
	after(0)
	put("a")
	one, first := newest()
	put("a")
	if again, tag := newest(); one == 0 || again != one || tag != first {
		t.Errorf("a record that was sent again: %d and %s after %d and %s", again, tag, one, first)
	}
	// Without the table, the server cannot read a row.
	s.Exec(t, `ALTER TABLE `+table+` RENAME TO hidden`)
	for _, query := range []string{"", "?limit=1", fmt.Sprintf("?changed_after=%d", one)} {
		s.Exec(t, `ALTER TABLE hidden RENAME TO `+table)
		tag := ask(query, "").Header.Get("ETag")
		s.Exec(t, `ALTER TABLE `+table+` RENAME TO hidden`)
		if a := ask(query, tag); a.Status != http.StatusNotModified || a.Header.Get("X-Last-Seq") != strconv.FormatInt(one, 10) {
			t.Errorf("%q, unchanged: %d, X-Last-Seq %s", query, a.Status, a.Header.Get("X-Last-Seq"))
		}
	}
	s.Exec(t, `ALTER TABLE hidden RENAME TO `+table)

	put("b")
	two, second := newest()
	if a := ask("", first); two <= one || second == first || a.Status != http.StatusOK {
		t.Errorf("after a change: %d and %s after %d and %s, %d", two, second, one, first, a.Status)
	}
	after(0, "a", "b")
	after(one, "b")
	after(two)
	lost(one+1, one, strconv.FormatInt(two, 10))
	lost(two+1, two, "null")

	// A backup from before the change of b is restored.
	s.Exec(t, `DELETE FROM `+numbers+` WHERE number = $1`, two)
	lost(two, one, "null")
	put("c")
	three, third := newest()
	if three == two || third == second {
		t.Errorf("after a restore: %d and %s as before", three, third)
	}
	if three > two {
		lost(two, one, strconv.FormatInt(three, 10))
	} else { // the random part of the lost number was greater
		lost(two, three, "null")
	}
}
