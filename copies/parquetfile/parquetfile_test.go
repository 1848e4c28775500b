package parquetfile

import (
	"bytes"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
)

// TestOldReaders checks that a file has what readers of the last years know: pages of version 1, plain or with a dictionary.
func TestOldReaders(t *testing.T) {
	set := columns.NewSet([]columns.Column{{Key: "text", Name: "text", Type: columns.Text}, {Key: "day", Name: "day", Type: columns.Date}}, false)
	var out bytes.Buffer
	w := NewWriter(&out, set, func(e *client.Entry) string { return e.Data })
	rows := []client.Entry{{EntryID: "e", CreatedAt: time.Unix(1, 0), Data: `{"text":"a","day":"2024-01-31"}`}}
	for _, do := range []func() error{func() error { return w.Write(rows) }, w.Close} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, c := range file.Metadata().RowGroups[0].Columns {
		for _, s := range c.MetaData.EncodingStats {
			if s.PageType == format.DataPage {
				pages++
			}
			plain := s.Encoding == format.Plain || s.Encoding == format.RLEDictionary
			if s.PageType == format.DataPageV2 || !plain {
				t.Errorf("%v has %s pages in %s", c.MetaData.PathInSchema, s.PageType, s.Encoding)
			}
		}
	}
	if want := len(file.Schema().Fields()); pages < want {
		t.Errorf("%d pages of data, want %d", pages, want)
	}
}
