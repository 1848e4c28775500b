package copies_test

import (
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/copies"
)

func TestMaskRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		without, hash []string
		secret, says  string
	}{
		{[]string{"entry_id"}, nil, "", "--without was given as entry_id, which the copy needs"},
		{nil, []string{"seq"}, "", "--hash was given as seq, which the copy needs"},
		{[]string{"contact"}, nil, "", "--without was given as contact; allowed: attachments, changed_at, contact_id,"},
		{nil, []string{"created_at"}, "a secret of the hashes", "created_at, which is no text"},
		{nil, []string{"contact_id"}, "short", "a secret of at least 16 bytes"},
		{[]string{"entry_data.x"}, []string{"entry_data.x"}, "a secret of the hashes", "given to --without and to --hash"},
	} {
		if _, err := copies.NewMask(tt.without, tt.hash, []byte(tt.secret)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v; want %q", err, tt.says)
		}
	}
	if m, err := copies.NewMask(nil, nil, nil); m != nil || err != nil || m.String() != "" {
		t.Errorf("%v, %v", m, err)
	}
}

// TestMaskIsPinned checks the text that copies of released versions have stored. With another text, they would refuse to
// go on.
func TestMaskIsPinned(t *testing.T) {
	t.Parallel()
	m, err := copies.NewMask([]string{"url", "entry_data.e-mail"}, []string{"contact_id"}, []byte("a secret of the hashes"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"without":["entry_data.e-mail","url"],"hash":["contact_id"],"secret":"cae6369fdfa5a880"}`; m.String() != want {
		t.Errorf("the text is %q; want %q", m, want)
	}
}
