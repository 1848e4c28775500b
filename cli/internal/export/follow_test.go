package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
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
	calls := 0
	o := FollowOptions{Fetch: func(_ context.Context, cursor string, receive func(client.RawPage) error) error {
		switch calls++; calls {
		case 1:
			return receive(client.RawPage{Body: strings.NewReader(""), NextCursor: "c"})
		case 2:
			if err := receive(client.RawPage{Body: &breaking{strings.NewReader("1\n")}, NextCursor: "x"}); !errors.Is(err, errCut) {
				return err
			}
		}
		return receive(client.RawPage{Body: strings.NewReader("2\n"), NextCursor: cursor + "d", Current: true})
	}}
	var out strings.Builder
	o.Stream = &out
	if done, err := Follow(t.Context(), o); err != nil || out.String() != "2\n" || calls != 2 || done.Changes != 1 {
		t.Errorf("%q after %d calls, %+v, %v", out.String(), calls, done, err)
	}
}

// TestFollowWritesNoEmptyLine starts a follower over the output of one that was killed before it stored its cursor. The
// follower ends the last line if that line has no end, and writes no empty line otherwise.
func TestFollowWritesNoEmptyLine(t *testing.T) {
	for _, tt := range []struct {
		name, left, want string
		flags            int
	}{
		{"nothing", "", "1\n2\n", os.O_WRONLY},
		{"a whole page", "1\n", "1\n1\n2\n", os.O_WRONLY},
		{"a whole page in a readable file", "1\n", "1\n1\n2\n", os.O_RDWR},
		{"a part of a line", "1\n{", "1\n{\n1\n2\n", os.O_WRONLY},
		{"a part of a line in a readable file", "1\n{", "1\n{\n1\n2\n", os.O_RDWR},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			if err := os.WriteFile(path, []byte(tt.left), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := os.OpenFile(path, tt.flags|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			o := FollowOptions{Fetch: feedPages("1\n2\n"), Stream: out, CursorFile: filepath.Join(t.TempDir(), "cursor")}
			if _, err := Follow(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if got := contentOf(t, path); got != tt.want {
				t.Errorf("the output is %q, want %q", got, tt.want)
			}
		})
	}
}
