// Command capacity sizes an installation for a demand by a model made from measured costs. It also reports how far
// the model's predictions are from the measured values.
//
//	go run ./bench/capacity -lists 2000 -gets 1000 -entries 1e8 -events 1e9
//	go run ./bench/capacity -check              predictions and measurements
//	go run ./bench/capacity -points results.json after a run of the benchmark costs on your machine
//
// docs/explanation/scaling.md says what the figures mean.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/lectern-dev/lectern/bench/internal/capacity"
)

//go:embed points.json
var points []byte

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	flags.SetOutput(out)
	from := flags.String("points", "", "a results.json with the rows of the benchmark costs; default: those that the program was built with")
	check := flags.Bool("check", false, "show predictions and measurements, and nothing else")
	d := capacity.Demand{}
	for _, f := range []struct {
		to    *float64
		name  string
		value float64
		usage string
	}{
		{&d.Projects, "projects", 1000, "projects"},
		{&d.Entries, "entries", 1e8, "entries that are kept"},
		{&d.Events, "events", 1e9, "events that are kept"},
		{&d.Gets, "gets", 500, "requests a second for one entry"},
		{&d.Lists, "lists", 1000, "requests a second for ten entries"},
		{&d.EventLists, "event-lists", 200, "requests a second for the events of an entry"},
		{&d.ViewLists, "view-lists", 100, "requests a second for the page views of ten entries"},
		{&d.ExportRows, "export-rows", 50_000, "entries a second in long lists"},
		{&d.IngestEntries, "ingest-entries", 500, "entries a second that come in"},
		{&d.IngestEvents, "ingest-events", 5000, "events a second that come in"},
		{&d.ActiveKeys, "keys", 1000, "keys that are used within the same minutes"},
		{&d.Hot, "hot", 0.1, "part of the data that should be in memory"},
		{&d.Copies, "copies", 1, "standbys of each database"},
	} {
		flags.Float64Var(f.to, f.name, f.value, f.usage)
	}
	on := capacity.Machine{}
	for _, f := range []struct {
		to    *float64
		name  string
		value float64
		usage string
	}{
		{&on.Cores, "cores", 16, "cores of a database machine"},
		{&on.MemoryGiB, "memory", 128, "its GiB of memory"},
		{&on.DiskGiB, "disk", 4000, "its GiB of disk"},
		{&on.Speed, "speed", 1, "speed of a core beside the one that was measured"},
		{&on.Use, "use", 0.6, "part of the cores that is planned with"},
		{&on.Fill, "fill", 0.7, "part of memory and disk that is planned with"},
	} {
		flags.Float64Var(f.to, f.name, f.value, f.usage)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not understood", flags.Args())
	}
	for _, part := range []float64{on.Use, on.Fill, on.Speed, on.Cores, on.MemoryGiB, on.DiskGiB} {
		if part <= 0 {
			return errors.New("-cores, -memory, -disk, -speed, -use and -fill take more than 0")
		}
	}
	results := points
	if *from != "" {
		var err error
		if results, err = os.ReadFile(*from); err != nil {
			return err
		}
	}
	p, err := capacity.Read(results)
	if err != nil {
		return err
	}
	m, err := capacity.New(p)
	if err != nil {
		return err
	}
	if *check {
		return compare(out, m, p)
	}
	return size(out, m.Need(d, on, p), d, on)
}

// compare writes predictions next to measurements.
func compare(out io.Writer, m capacity.Model, p capacity.Points) error {
	fmt.Fprintf(out, "service   %.0f µs a request + %.2f µs a row + %.2f µs for 1,000 bytes\n", m.Request, m.ServiceRow, m.KB)
	fmt.Fprintf(out, "postgres  %.0f µs for one row by its key; %.0f µs a list + %.2f µs a row + %.1f µs a look-up within it + %.2f µs a row of an index that is passed\n",
		m.Point, m.Statement, m.Row, m.Lookup, m.IndexRow)
	fmt.Fprintf(out, "ingest    %.1f µs of the service and %.1f µs of Postgres an entry\n", m.Ingest.Service, m.Ingest.Postgres)
	fmt.Fprintf(out, "on disk   %.0f bytes an entry, %.0f bytes an event, with indexes\n\n", m.Entry, m.Event)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATION\tPROGRAM\tPREDICTED µs\tMEASURED µs\tERROR\t")
	worst := 0.0
	for _, c := range m.Compare(p) {
		note := ""
		if c.Fitted {
			note = "the model is made from it"
		} else {
			worst = math.Max(worst, math.Abs(c.Error()))
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%+.0f %%\t%s\n", c.Operation, c.Program, c.Predicted, c.Measured, 100*c.Error(), note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThe worst error of a prediction is %.0f %%.\n", 100*worst)
	return err
}

// size writes the resources that a demand needs.
func size(out io.Writer, n capacity.Need, d capacity.Demand, on capacity.Machine) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) { fmt.Fprintf(w, what+"\t"+format+"\n", args...) }
	line("Services", "%.1f cores at %.0f %%: %.0f replicas of %d cores and %.0f MiB", n.ServiceCores, 100*on.Use, n.ServiceReplicas, capacity.ReplicaCores, n.ServiceMiB)
	line("Postgres", "%.1f cores at %.0f %%", n.PostgresCores, 100*on.Use)
	line("Data", "%s GiB on disk in one copy, %s GiB in %.0f; %s GiB that should be in memory",
		count(n.DiskGiB), count(n.DiskGiB*(1+d.Copies)), 1+d.Copies, count(n.HotGiB))
	line("Database machines", "%.0f of %.0f cores, %.0f GiB of memory, %.0f GiB of disk; with standbys %.0f",
		n.Workers(), on.Cores, on.MemoryGiB, on.DiskGiB, n.Workers()*(1+d.Copies))
	line("", "by processors %.0f, by disk %.0f, by memory %.0f: %s binds", n.WorkersByCores, n.WorkersByDisk, n.WorkersByMemory, n.Binding)
	if n.Workers() > 1 {
		line("Shards", "%.0f", n.Shards)
	}
	line("Connections", "%s to the data, %s to the keys", count(n.Connections), count(n.KeyConnections))
	line("Redis", "%.2f cores", n.RedisCores)
	line("Changes of keys", "are asked for %s times a second", count(n.KeyQuestions))
	if d.Events > 0 && d.IngestEvents > 0 {
		line("Time", "%s events come in within %.0f days at the peak's rate", count(d.Events), d.Events/d.IngestEvents/86400)
	}
	return w.Flush()
}

// count formats a number with separators.
func count(n float64) string {
	s := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
