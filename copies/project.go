package copies

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

// Project has the records of a project that have no feed: embeddables, experiments and their versions and history. A
// destination replaces its records of each part by the part. A part that is nil is unknown, because the API key may not
// read it or the server lacks it: the destination keeps its records. An empty part means that the source has no
// records.
type Project struct {
	// Embeddables are ordered by id, and Versions by embeddable and then by number. Each iteration reads the
	// definitions from the API, one at a time, so that a destination does not need to hold all in memory. An error is
	// the last pair, and the destination must return an error with that error in its chain.
	Embeddables iter.Seq2[client.EmbeddableWithDefinition, error]
	Versions    iter.Seq2[client.EmbeddableVersionWithDefinition, error]
	// Experiments has the newest experiment first. History has the changes of each experiment's status, the oldest
	// first.
	Experiments []client.Experiment
	History     []StatusChange
}

// StatusChange is one change of an experiment's status, with the experiment's id and the number of the change.
type StatusChange struct {
	ExperimentID string `json:"experiment_id"`
	// Change is the number of the change within its experiment. The first change is 1.
	Change int64 `json:"change"`
	client.ExperimentStatusChange
}

// Sound returns an iterator over list whose errors are all nil, for functions that take an iterator with errors. For a
// nil list, the iterator is nil.
func Sound[T any](list []T) iter.Seq2[T, error] {
	if list == nil {
		return nil
	}
	return func(yield func(T, error) bool) {
		for _, record := range list {
			if !yield(record, nil) {
				return
			}
		}
	}
}

// A copy that follows the feed reads the records without a feed at most once in projectEvery. The pause between two
// readings is at least projectShare times as long as a reading.
const (
	projectEvery = time.Minute
	projectShare = 20
)

// look reads the records without a feed for a batch that is current, if the destination takes them. If the digest of the
// records differs from the copy's, look puts the records and the digest into the batch. If the copy follows the feed,
// look reads the records only after a pause: see projectEvery.
func (r *run) look(ctx context.Context, b *Batch) error {
	began := time.Now()
	if !r.Destination.Traits().Project || !b.Current || r.Follow && began.Before(r.nextLook) {
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

// readProject reads the project's records that have no feed, and returns them with their digest. The digest contains
// the list of versions without definitions, because the definition of a version never changes.
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

// part calls read, which reads a part of the project. If the API key may not read the part, or the server lacks it,
// part tells the user and returns nil.
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
	embeddable := func(id string) (client.EmbeddableWithDefinition, error) {
		e, err := o.Client.Embeddable(ctx, o.Source.ProjectID, id)
		o.Mask.record(&e)
		return e, err
	}
	version := func(v client.EmbeddableVersion) (client.EmbeddableVersionWithDefinition, error) {
		d, err := o.Client.Version(ctx, o.Source.ProjectID, v.EmbeddableID, v.Number)
		o.Mask.record(&d)
		return d, err
	}
	for e, err := range each(ids, embeddable) {
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
	p.Embeddables, p.Versions = each(ids, embeddable), each(versions, version)
	return nil
}

// each returns an iterator that reads the record of each key when needed. each leaves out records that the server no
// longer has. An error ends the iteration as the last pair.
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
			status := StatusChange{e.ID, int64(i + 1), c}
			o.Mask.record(&status)
			history = append(history, status)
		}
	}
	p.Experiments, p.History = experiments, history
	return add.Encode([]any{experiments, history})
}
