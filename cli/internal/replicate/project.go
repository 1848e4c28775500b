package replicate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Project has the records of a project other than entries and events. A destination that gets one replaces what it has of each part
// by the part, in the same commit as the batch's position. A part that is nil is unknown, because the key may not read
// it: the destination leaves what it has. A part without records means that the source has none.
type Project struct {
	// Embeddables are ordered by their ids. Versions follow the order of their embeddables and then of their numbers. A loop
	// over one of them reads the definitions from the API, one at a time, so a destination need not hold all in memory. It
	// may be repeated. An error is the last pair, and the destination returns it as it is.
	Embeddables iter.Seq2[client.EmbeddableWithDefinition, error]
	Versions    iter.Seq2[client.EmbeddableVersionWithDefinition, error]
	// Experiments begin with the newest. History has the changes of each experiment's status, the oldest first.
	Experiments []client.Experiment
	History     []StatusChange
}

// StatusChange is a change of an experiment's status.
type StatusChange struct {
	ExperimentID string
	// Change is the number of the change in its experiment, from 1.
	Change int64
	client.ExperimentStatusChange
}

// Sound yields the records of a list, without errors. It returns nil for nil.
func Sound[T any](list []T) iter.Seq2[T, error] {
	if list == nil {
		return nil
	}
	return func(yield func(T, error) bool) {
		for _, one := range list {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// A copy that follows the feed looks at the project's other records once in projectEvery. A look that takes more than one
// projectShare of that makes it look less often.
const (
	projectEvery = time.Minute
	projectShare = 20
)

// look gives a batch that is current the project, with its digest, if it differs from the one that the copy has.
func (r *run) look(ctx context.Context, b *Batch) error {
	began := time.Now()
	if !r.Project || !b.Current || r.Follow && began.Before(r.nextLook) {
		return nil
	}
	project, digest, err := r.readProject(ctx)
	if err != nil {
		return err
	}
	if digest != b.Position.Project {
		b.Project, b.Position.Project = project, digest
	}
	now := time.Now()
	r.nextLook = now.Add(max(projectEvery, projectShare*now.Sub(began)))
	return nil
}

// readProject reads the project's other records, and makes a digest of all. The list of versions stands for their
// definitions, which never change.
func (o *Options) readProject(ctx context.Context) (*Project, string, error) {
	p, digest := &Project{}, sha256.New()
	add := json.NewEncoder(digest)
	if err := o.part("embeddables", "embeddables:read", digest, func() error { return o.readEmbeddables(ctx, p, add) }); err != nil {
		return nil, "", err
	}
	if err := o.part("experiments", "experiments:read", digest, func() error { return o.readExperiments(ctx, p, add) }); err != nil {
		return nil, "", err
	}
	return p, hex.EncodeToString(digest.Sum(nil)), nil
}

// part reads a part. If the key may not read it, the user learns that once.
func (o *Options) part(name, scope string, digest io.Writer, read func() error) error {
	fmt.Fprintf(digest, "%s\n", name)
	err := read()
	missing := notFound(err)
	if client.Code(err) != client.CodeInsufficientScope && !missing {
		return err
	}
	fmt.Fprintln(digest, "unknown")
	advice := "mint a key with the scope " + scope
	if missing {
		advice = "the server at " + o.Source.URL + " does not have them"
	}
	o.Note(fmt.Sprintf("The copy gets no %s: %s.", name, advice))
	return nil
}

func notFound(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusNotFound
}

func (o *Options) readEmbeddables(ctx context.Context, p *Project, add *json.Encoder) error {
	var ids []string
	var versions []client.EmbeddableVersion
	for e, err := range o.Client.Embeddables(ctx, o.Source.ProjectID, client.EmbeddableQuery{}) {
		if err != nil {
			return err
		}
		ids = append(ids, e.EmbeddableID)
	}
	one := func(id string) (client.EmbeddableWithDefinition, error) {
		e, err := o.Client.Embeddable(ctx, o.Source.ProjectID, id)
		o.Mask.record(&e)
		return e, err
	}
	version := func(v client.EmbeddableVersion) (client.EmbeddableVersionWithDefinition, error) {
		d, err := o.Client.Version(ctx, o.Source.ProjectID, v.EmbeddableID, v.Number)
		o.Mask.record(&d)
		return d, err
	}
	for e, err := range each(ids, one) {
		if err == nil {
			err = add.Encode(e)
		}
		if err != nil {
			return err
		}
	}
	for _, id := range ids {
		for v, err := range o.Client.Versions(ctx, o.Source.ProjectID, id, client.VersionQuery{Direction: client.Ascending}) {
			if notFound(err) {
				break
			}
			if err == nil {
				err = add.Encode(v)
			}
			if err != nil {
				return err
			}
			versions = append(versions, v)
		}
	}
	p.Embeddables, p.Versions = each(ids, one), each(versions, version)
	return nil
}

// each reads the record of each key, except those that were removed meanwhile.
func each[K, T any](keys []K, read func(K) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, key := range keys {
			record, err := read(key)
			if notFound(err) {
				continue
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func (o *Options) readExperiments(ctx context.Context, p *Project, add *json.Encoder) error {
	experiments, history := []client.Experiment{}, []StatusChange{}
	for e, err := range o.Client.Experiments(ctx, o.Source.ProjectID, client.ExperimentQuery{}) {
		if err != nil {
			return err
		}
		o.Mask.record(&e)
		experiments = append(experiments, e)
	}
	for _, e := range experiments {
		changes, err := o.Client.ExperimentHistory(ctx, o.Source.ProjectID, e.ID)
		if err != nil && !notFound(err) {
			return err
		}
		for i, c := range changes {
			one := StatusChange{e.ID, int64(i + 1), c}
			o.Mask.record(&one)
			history = append(history, one)
		}
	}
	p.Experiments, p.History = experiments, history
	return add.Encode([]any{experiments, history})
}
