package clienttest_test

import (
	"context"
	"fmt"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
)

// A test of a follower adds changes while it runs.
func ExampleServer_AddChanges() {
	api := clienttest.New(clienttest.Data{Changes: []client.Change{
		{Type: client.EntryChanged, Seq: 1, Entry: &client.Entry{EntryID: "en_1"}},
	}})
	defer api.Close()
	c, err := client.New(api.URL)
	if err != nil {
		panic(err)
	}
	for page, err := range c.Follow(context.Background(), "pr_1", client.ChangeQuery{}) {
		if err != nil {
			panic(err)
		}
		for _, change := range page.Changes {
			fmt.Println(change.Seq, change.Type)
		}
		if page.LastSeq == 2 {
			break
		}
		api.AddChanges(client.Change{Type: client.EntryRemoved, Seq: 2, Removal: &client.Removal{EntryID: "en_1", Reason: client.Erased}})
	}
	// Output:
	// 1 entry
	// 2 entry_removed
}

// A test of a program whose key is rotated.
func ExampleServer_SetKey() {
	api := clienttest.New(clienttest.Data{Projects: []client.Project{{ID: "pr_1", Title: "One"}}})
	defer api.Close()
	api.SetKey("first")
	keys := []string{"first", "first", "second"}
	c, err := client.New(api.URL, client.WithAPIKeyFunc(func(context.Context) (string, error) {
		key := keys[0]
		keys = keys[1:]
		return key, nil
	}))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Project(context.Background(), "pr_1"))
	api.SetKey("second")
	fmt.Println(c.Project(context.Background(), "pr_1"))
	// Output:
	// {pr_1 One} <nil>
	// {pr_1 One} <nil>
}
