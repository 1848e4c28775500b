package row

import (
	"context"
	"errors"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// edge measures the cost of the edge for the requests of get_one. It compares it with direct access, and with Traefik
// if that is installed.
func (b *Bench) edge(ctx context.Context) (_ []report.Result, err error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := e.requests(b.stage.Folder, "edge", "/projects/%[1]s/entries/%[2]s")
	if err != nil {
		return nil, err
	}
	edge, err := b.stage.StartEdge(ctx, e.Service)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, edge.Stop()) }()
	through := []*stage.Service{edge}
	traefik, err := b.stage.StartTraefik(ctx, e.Service)
	switch {
	case err == nil:
		through = append(through, traefik)
		defer func() { err = errors.Join(err, traefik.Stop()) }()
	case errors.Is(err, stage.ErrNoTraefik):
		b.Note("%v", err)
	default:
		return nil, err
	}

	many := []contender{(&driven{of: e.Service}).by(requests, b.Round)}
	one := []contender{alone(b, requests, e.Service)}
	var drives []*driven
	for _, s := range through {
		d := &driven{of: s}
		drives, many, one = append(drives, d), append(many, d.by(requests, b.Round)), append(one, alone(b, requests, s))
	}
	if _, err := rounds(ctx, 1, many...); err != nil { // warm
		return nil, err
	}
	for _, d := range drives {
		d.cpu = nil
	}
	rates, err := rounds(ctx, b.Rounds, many...)
	if err != nil {
		return nil, err
	}
	times, err := rounds(ctx, b.Rounds, one...)
	if err != nil {
		return nil, err
	}
	added := make([][]float64, len(times))
	for i := range times {
		for round, p50 := range times[i] {
			added[i] = append(added[i], p50-times[0][round])
		}
	}
	results := []report.Result{report.Ratios("edge_rps", report.RequestsRate, report.Floor{}, rates[1], "direct", rates[0])}
	if traefik == nil {
		return append(results,
			report.Values("edge_cpu", report.Nanoseconds, report.Floor{}, drives[0].cpu),
			report.Ratios("edge_p50", report.Milliseconds, report.Floor{}, times[1], "direct", times[0]),
			report.Values("edge_added_p50", report.Milliseconds, report.Floor{}, added[1])), nil
	}
	return append(results,
		report.Ratios("edge_rps_traefik", report.RequestsRate, report.Floor{}, rates[1], "Traefik", rates[2]),
		report.Ratios("edge_cpu", report.Nanoseconds, report.Floor{}, drives[0].cpu, "Traefik", drives[1].cpu),
		report.Ratios("edge_p50", report.Milliseconds, report.Floor{}, times[1], "direct", times[0]),
		report.Ratios("edge_added_p50", report.Milliseconds, report.Floor{}, added[1], "added by Traefik", added[2])), nil
}

// alone measures the median time of one request at a time.
func alone(b *Bench, requests *load.HTTP, s *stage.Service) contender {
	return func(ctx context.Context) (float64, error) {
		rate, err := requests.Run(ctx, s.URL, 1, b.Round)
		return milliseconds(rate.P50), err
	}
}
