// Command bench compares the services with their limits. It drives real processes from outside, in rounds that
// alternate with those of Postgres and of a bare handler.
//
//	go run ./bench [-compare FILE] [-grow N] [-peers] [NAME…]
//	CITUS_KIT=FOLDER go run ./bench -citus [-compare FILE] [NAME…]
//	go run ./bench -hold [-citus]
//
// It writes a table to standard output and bench/results.json. With -hold it measures nothing and leaves everything
// running, with profiles.
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
	compare := flags.String("compare", "", "a results.json of another `file` to print beside the new one")
	within := flags.Duration("within", 30*time.Minute, "the longest that all of it may take")
	begin := time.Now()
	options := row.Options{Note: func(format string, a ...any) {
		fmt.Fprintf(progress, "%5.0fs  "+format+"\n", append([]any{time.Since(begin).Seconds()}, a...)...)
	}}
	flags.IntVar(&options.Rounds, "rounds", 7, "how often each load runs")
	flags.DurationVar(&options.Round, "round", 2*time.Second, "how long a load runs each time, in whole seconds")
	flags.IntVar(&options.Grow, "grow", 10, "how many `times` the rows grow_10x has")
	flags.BoolVar(&options.Peers, "peers", false, "measure also other servers of the same job that are installed")
	citus := flags.Bool("citus", false, "measure the rows of a Citus cluster, and those alone; CITUS_KIT names the folder of a program citus that starts one")
	hold := flags.Bool("hold", false, "start everything with data, say how it is reached, and measure nothing until interrupted")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if options.Rounds < 1 || options.Round < time.Second || options.Grow < 1 {
		return errors.New("-rounds and -grow take 1 or more, -round a second or more")
	}
	if *citus {
		if options.Citus = os.Getenv("CITUS_KIT"); options.Citus == "" {
			return errors.New("-citus: CITUS_KIT is not set: it names the folder of a program citus that starts a cluster")
		}
	}
	var before []report.Result
	if *compare != "" {
		if before, err = report.Read(*compare); err != nil { // now: it may be the file that is written
			return err
		}
	}
	root, err := source(ctx)
	if err != nil {
		return err
	}
	s, err := stage.Open(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if *hold {
		s.Profiles = true
		return row.New(s, options).Hold(ctx, out)
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()

	machine := describe(ctx)
	var results []report.Result
	err = row.New(s, options).Run(ctx, flags.Args(), func(r []report.Result) { results = append(results, r...) })
	fmt.Fprintf(out, "%s\n%d rounds of %v; load average %s at the end; %v in all\n\n",
		machine, options.Rounds, options.Round, loadAverage(), time.Since(begin).Round(time.Second))
	err = errors.Join(err, report.Table(out, results))
	if before != nil {
		fmt.Fprintln(out)
		err = errors.Join(err, report.Compare(out, before, results))
	}
	if len(results) > 0 {
		err = errors.Join(err, report.Write(filepath.Join(root, "bench", "results.json"), results))
	}
	return err
}

// source returns the folder of the workspace that this program is run in.
func source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == "off" {
		return "", errors.New("run it in the workspace: no go.work is in use here")
	}
	return filepath.Dir(file), nil
}
