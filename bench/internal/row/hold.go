package row

import (
	"context"
	"fmt"
	"io"

	"github.com/lectern-dev/lectern/bench/internal/sample"
)

// Hold makes the data and starts the service and the bare handler, for profiles and loads by hand. It writes their
// addresses to out, and leaves them running until ctx ends. With Citus they use a cluster.
func (b *Bench) Hold(ctx context.Context, out io.Writer) error {
	data := b.entries
	if b.Citus != "" {
		data = b.onCluster
	}
	e, err := data(ctx)
	if err != nil {
		return err
	}
	for _, r := range reads() {
		if _, err := e.requests(b.stage.Folder, r.name, r.path+"%.0[2]s"); err != nil {
			return err
		}
		if _, err := b.pgbench(e, r, r.name); err != nil {
			return err
		}
	}
	project := projectID(1)
	for _, line := range [][2]string{
		{"SERVICE", e.URL}, {"INTERNAL", e.InternalURL}, {"BARE", e.bare.URL}, {"DATABASE_URL", e.Database.Reader},
		{"PROJECT", project}, {"ENTRY", sample.EntryID(1)}, {"KEY", e.keys[project]},
		{"BIG_PROJECT", bigProject}, {"BIG_KEY", e.keys[bigProject]}, {"LOADS", b.stage.Folder},
	} {
		fmt.Fprintf(out, "%s='%s'\n", line[0], line[1])
	}
	b.Note("running until interrupted")
	<-ctx.Done()
	return nil
}
