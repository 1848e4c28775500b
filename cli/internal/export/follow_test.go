package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
)

// feedPages returns a Fetch function for a feed of these pages. The cursor after the n-th page is n letters long.
func feedPages(pages ...string) func(context.Context, string, func(client.RawPage) error) error {
	return func(_ context.Context, cursor string, receive func(client.RawPage) error) error {
		at := len(cursor)
		page := ""
		if at < len(pages) {
			page, cursor = pages[at], cursor+"c"
		}
		return receive(client.RawPage{Body: strings.NewReader(page), NextCursor: cursor, Current: len(cursor) >= len(pages), LastSeq: 7})
	}
}

// openOutput opens a file as a shell does for >>.
func openOutput(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFollowAfterAKill checks that the next run continues from any state that a kill can leave between two writes.
func TestFollowAfterAKill(t *testing.T) {
	for _, tt := range []struct {
		name string
		left string // appended to the output after the first page, without a cursor
		want string
	}{
		{"nothing", "", "1\n2\n3\n"},
		{"a cut line", "2\n{\"chan", "1\n2\n{\"chan\n2\n3\n"},
		{"a whole page", "2\n3\n", "1\n2\n3\n\n2\n3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			file, cursor := filepath.Join(folder, "out"), filepath.Join(folder, "cursor")
			o := FollowOptions{Feed: Feed{"u", "p", ""}, Fetch: feedPages("1\n"), Stream: openOutput(t, file), CursorFile: cursor}
			if done, err := Follow(t.Context(), o); err != nil || done != (Followed{1, 7}) {
				t.Fatalf("%+v, %v", done, err)
			}
			if _, err := openOutput(t, file).WriteString(tt.left); err != nil {
				t.Fatal(err)
			}
			o.Fetch, o.Stream = feedPages("1\n", "2\n3\n"), openOutput(t, file)
			if done, err := Follow(t.Context(), o); err != nil || done != (Followed{2, 7}) {
				t.Fatalf("%+v, %v", done, err)
			}
			if diff := cmp.Diff(tt.want, contentOf(t, file)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var errFull = errors.New("full")

// full is a Writer that fails after n writes.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFollowKeepsTheCursorOfWhatIsWritten checks that the stored cursor is never ahead of the output.
func TestFollowKeepsTheCursorOfWhatIsWritten(t *testing.T) {
	cursor := filepath.Join(t.TempDir(), "cursor")
	o := FollowOptions{Fetch: feedPages("1\n", "2\n"), Stream: &full{1}, CursorFile: cursor}
	if _, err := Follow(t.Context(), o); !errors.Is(err, errFull) {
		t.Fatalf("got %v", err)
	}
	if got := contentOf(t, cursor); !strings.Contains(got, `"cursor": "c"`) {
		t.Errorf("the cursor file has %s, want the cursor of the first page", got)
	}
	var rest strings.Builder
	o.Stream = &rest
	if _, err := Follow(t.Context(), o); err != nil || rest.String() != "2\n" {
		t.Errorf("then came %q, %v", rest.String(), err)
	}
}

// TestFollowWritesWholePages checks that Follow writes no part of a truncated page. An empty page before the end does
// not stop it.
func TestFollowWritesWholePages(t *testing.T) {
	calls, waits := 0, 0
	o := FollowOptions{Waits: func() { waits++ }, Fetch: func(_ context.Context, cursor string, receive func(client.RawPage) error) error {
		switch calls++; calls {
		case 1:
			return receive(client.RawPage{Body: strings.NewReader(""), NextCursor: "c", RetryAfter: 1})
		case 2:
			if err := receive(client.RawPage{Body: &breaking{strings.NewReader("1\n")}, NextCursor: "x"}); !errors.Is(err, errCut) {
				return err
			}
		}
		return receive(client.RawPage{Body: strings.NewReader("2\n"), NextCursor: cursor + "d", Current: true})
	}}
	var out strings.Builder
	o.Stream = &out
	if done, err := Follow(t.Context(), o); err != nil || out.String() != "2\n" || waits != 1 || calls != 2 || done.Changes != 1 {
		t.Errorf("%q after %d calls and %d waits, %+v, %v", out.String(), calls, waits, done, err)
	}
}
