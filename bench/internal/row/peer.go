package row

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/report"
)

// postGraphileVersion is the installed package with its exact version.
const postGraphileVersion = "postgraphile@4.14.1"

// postGraphile compares list_10 by PostGraphile, which makes a GraphQL API of any schema, with the service.
// PostGraphile checks no key and limits no rate.
func (b *Bench) postGraphile(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := b.stage.StartPostGraphile(ctx, e.Database, postGraphileVersion)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]load.Request, variety)
	for i := range list {
		query, err := json.Marshal(map[string]string{"query": fmt.Sprintf(`{ allEntries(first: 10, condition: {projectId: "%s"},
			orderBy: [UPDATED_AT_DESC, ENTRY_ID_DESC]) { nodes { entryId groupId projectId embeddableId contactId createdAt updatedAt
			entryData } pageInfo { hasNextPage endCursor } } }`, projectID(1+random.IntN(projects)))})
		if err != nil {
			return nil, err
		}
		list[i] = load.Request{Path: "/graphql", Body: string(query)}
	}
	peerLoad, err := load.NewHTTP(b.stage.Folder, "peer_postgraphile", list)
	if err != nil {
		return nil, err
	}
	ownLoad, err := e.requests(b.stage.Folder, "list_10_beside_peer", "/projects/%[1]s/entries%.0[2]s")
	if err != nil {
		return nil, err
	}
	by := func(requests *load.HTTP, base string) contender {
		return func(ctx context.Context) (float64, error) {
			rate, err := requests.Run(ctx, base, connections, b.Round)
			return rate.PerSecond, err
		}
	}
	v, err := rounds(ctx, b.Rounds, by(peerLoad, peer.URL), by(ownLoad, e.URL))
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios("peer_postgraphile", report.RequestsRate, report.Floor{}, v[0], "list_10", v[1]),
	}, peer.Stop()
}
