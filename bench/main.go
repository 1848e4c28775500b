// Command bench measures the services against references, such as Postgres itself and a bare handler. Services and
// references are processes, and their rounds alternate.
//
//	go run ./bench [OPTION…] [NAME…]
//
// The command measures the rows with the given names, or all rows, and writes a table to standard output. With -old,
// the command also measures another checkout in the same rounds, and writes a second table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/row"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	other := flags.String("old", "", "the `folder` of another checkout, which is measured in the same rounds")
	within := flags.Duration("within", time.Hour, "the longest that all of it may take")
	begin := time.Now()
	options := row.Options{Note: func(format string, a ...any) {
		fmt.Fprintf(progress, "%5.0fs  "+format+"\n", append([]any{time.Since(begin).Seconds()}, a...)...)
	}}
	flags.IntVar(&options.Rounds, "rounds", 7, "how often each load runs")
	flags.DurationVar(&options.Round, "round", 2*time.Second, "how long a load runs each time, in whole seconds")
	flags.IntVar(&options.Grow, "grow", 10, "how many `times` the rows grow_10x has")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if options.Rounds < 1 || options.Round < time.Second || options.Grow < 1 {
		return errors.New("-rounds and -grow take 1 or more, -round a second or more")
	}
	defer must.Recover(&err)
	tree := stage.New(source(ctx))
	defer func() { err = errors.Join(err, tree.Close()) }()
	tree.Open(ctx)
	var old *stage.Stage
	if *other != "" {
		old = stage.New(must.Get(filepath.Abs(*other)))
		defer func() { err = errors.Join(err, old.Close()) }()
		old.Open(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()

	machine := describe(ctx)
	var results []report.Result
	err = row.New(tree, old, options).Run(ctx, flags.Args(), func(r []report.Result) { results = append(results, r...) })
	fmt.Fprintf(out, "%s\n%d rounds of %v; load average %s at the end; %v in all\n\n",
		machine, options.Rounds, options.Round, loadAverage(), time.Since(begin).Round(time.Second))
	err = errors.Join(err, report.Table(out, results))
	if old != nil {
		fmt.Fprintln(out)
		err = errors.Join(err, report.Compare(out, results))
	}
	return err
}

// source returns the root folder of the Go workspace in use, and panics by package must if there is none.
func source(ctx context.Context) string {
	file := strings.TrimSpace(string(must.Get(exec.CommandContext(ctx, "go", "env", "GOWORK").Output())))
	if file == "" || file == "off" {
		must.Do(errors.New("run it in the workspace: no go.work is in use here"))
	}
	return filepath.Dir(file)
}
