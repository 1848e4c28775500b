package copies

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
)

// TestDecoder compares the decoder with that of package client, over lines of one feed. A value must not stay for the
// lines after, and a value that stays must not change with them.
func TestDecoder(t *testing.T) {
	long := strings.Repeat("ü\\n", pieceBytes)
	lines := []string{
		`{"change":"event","seq":9007199254740993,"event":{"entry_id":"a","page_index":9007199254740993,"page_id":"","url":"https://a/?b=\u0026\"","event_key":"k","timestamp":"2026-01-31T10:00:00.123456+02:00"}}`,
		`{"change":"event","seq":2,"event":{"entry_id":"a","page_index":9007199254740993,"page_id":"","url":null,"event_key":"l","timestamp":"2026-01-31T10:00:00Z"}}`,
		`{"change":"event","seq":3,"event":{"event_key":"m","page_index":-1,"more":{"entry_id":["x"]},"page\u005fid":"p","entry_id":"b"}}`,
		`{"seq":4,"event":{},"change":"event"}`,
		`{"change":"entry","seq":5,"entry":{"entry_id":"e","entry_data":"{\"a\":9007199254740993,\"a\":\"\\u0000 \ud83d\ude00 <\"}","created_at":"2026-01-31T10:00:00Z"},"event":null}`,
		`{"change":"entry","seq":6,"entry":{"entry_id":"e","entry_data":"` + long + `"}}`,
		`{"change":"entry_removed","seq":7,"entry_id":"e","removed_at":"2026-01-31T10:00:00Z","reason":"erased"}`,
		`{"change":"entry","seq":8,"entry":{"entry_id":null,"contact_id":"c","updated_at":null}}`,
		`{"change":"newer","seq":9,"newer":{}}`,
	}
	d := newDecoder()
	var got, want []client.Change
	for _, line := range lines {
		c, err := d.change([]byte(line + "\n"))
		if err != nil {
			t.Fatalf("%.99s: %v", line, err)
		}
		var as client.Change
		if err := json.Unmarshal([]byte(line), &as); err != nil {
			t.Fatal(err)
		}
		got, want = append(got, c), append(want, as)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{
		``, `{`, `[]`, `{"change":1}`, `{"change":"entry","seq":1.0}`, `{"seq":9223372036854775808}`, `{"seq":1,"seq":2}`, `{"seq":1} 2`,
		`{"event":{"url":1}}`, `{"event":{"url":"\ud800"}}`, "{\"event\":{\"url\":\"\xff\"}}", `{"event":{"page_index":"1"}}`, `{"event":{"timestamp":"yesterday"}}`,
		`{"event":{"url":"a","url":"b"}}`, `{"entry":[]}`, `{"more":[}`,
	} {
		if c, err := d.change([]byte(line)); err == nil {
			t.Errorf("%s is decoded as %+v", line, c)
		}
	}
}
