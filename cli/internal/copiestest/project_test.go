package copiestest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/shared/auth"
)

// memory is a copy that has a position and the last project that it got.
type memory struct {
	at       copies.Position
	projects int
	unknown  []string
	titles   map[string]string // of embeddables
	versions []client.EmbeddableVersionWithDefinition
	statuses []string // of experiments, by their history
}

func (m *memory) Open(context.Context) (copies.Position, error) { return m.at, nil }
func (*memory) Limits() copies.Limits                           { return copies.Limits{Changes: 20, Bytes: 8 << 10} }
func (*memory) Close() error                                    { return nil }

func (m *memory) Apply(_ context.Context, b *copies.Batch) error {
	m.at = b.Position
	if b.Project == nil {
		return nil
	}
	was := *m
	*m = memory{at: b.Position, projects: was.projects + 1, titles: map[string]string{}}
	if b.Project.Embeddables == nil || b.Project.Versions == nil {
		m.unknown = append(m.unknown, "embeddables")
	} else {
		for e, err := range b.Project.Embeddables {
			if err != nil {
				return err
			}
			m.titles[e.EmbeddableID] = e.Title + e.Definition
		}
		for v, err := range b.Project.Versions {
			if err != nil {
				return err
			}
			m.versions = append(m.versions, v)
		}
	}
	if b.Project.Experiments == nil || b.Project.History == nil {
		m.unknown = append(m.unknown, "experiments")
	}
	for _, c := range b.Project.History {
		m.statuses = append(m.statuses, c.ExperimentID+" "+string(*c.Status))
	}
	return nil
}

// A destination gets the whole project when it differs from the one that it has, and as much as the key may read.
func TestProject(t *testing.T) {
	t.Parallel()
	s := newWholeSource(t)
	m := &memory{}
	var notes []string
	sync := func(c *client.Client, projects int, unknown ...string) {
		t.Helper()
		before := m.projects
		_, err := copies.Run(t.Context(), copies.Options{
			Client: c, Source: s.is(), Destination: m, Project: true, PageSize: 7, Attempts: 1,
			Note: func(text string) { notes = append(notes, text) },
		})
		if err != nil || m.projects-before != projects || !slices.Equal(m.unknown, unknown) {
			t.Errorf("%v, %d projects without %v; want %d without %v", err, m.projects-before, m.unknown, projects, unknown)
		}
	}
	sync(s.client, 1) // one without records
	s.fill(t, 0, 30)
	sync(s.client, 0)
	s.define(t, "emb_1", 12, "draft", 1)
	s.define(t, "emb/2", 1, "running", 1)
	sync(s.client, 1)
	if diff := cmp.Diff(map[string]string{"emb_1": `Title ü{"n":12}`, "emb/2": `Title ü{"n":1}`}, m.titles); diff != "" {
		t.Error(diff)
	}
	if len(m.versions) != 13 || m.versions[0].EmbeddableID != "emb/2" || m.versions[12].Number != 12 || m.versions[12].Definition != `{"v":12}` {
		t.Errorf("%+v", m.versions)
	}
	sync(s.client, 0)
	s.define(t, "emb_1", 12, "paused", 2) // a change of the experiment alone
	sync(s.client, 1)
	if diff := cmp.Diff([]string{"exp_emb_1 draft", "exp_emb_1 paused", "exp_emb/2 running"}, m.statuses); diff != "" {
		t.Error(diff)
	}
	if len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	sync(s.with(t, auth.EntriesRead, auth.ExperimentsRead), 1, "embeddables")
	sync(s.with(t, auth.EntriesRead), 1, "embeddables", "experiments")
	if len(notes) != 3 || notes[0] != "The copy gets no embeddables: mint a key with the scope embeddables:read." {
		t.Errorf("%q", notes)
	}
}
