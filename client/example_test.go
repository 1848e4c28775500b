package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
)

// newAPI starts a fake of the API with two entries.
func newAPI() *clienttest.Server {
	return clienttest.New(clienttest.Data{
		Entries: []client.Entry{
			{ProjectID: "pr_1", EntryID: "en_1", Data: `{"email":"a@example.com"}`},
			{ProjectID: "pr_1", EntryID: "en_2", Data: `{"email":"b@example.com"}`},
		},
		Changes: []client.Change{
			{Type: client.EntryChanged, Seq: 1, Entry: &client.Entry{EntryID: "en_1"}},
			{Type: client.EntryRemoved, Seq: 2, Removal: &client.Removal{EntryID: "en_1", Reason: client.Erased}},
		},
	})
}

func ExampleClient_Entries() {
	api := newAPI()
	defer api.Close()
	c, err := client.New(api.URL, client.WithAPIKey("rk_1"))
	if err != nil {
		panic(err)
	}
	for entry, err := range c.Entries(context.Background(), "pr_1", client.EntryQuery{Direction: client.Ascending}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(entry.EntryID, entry.Data)
	}
	// Output:
	// en_1 {"email":"a@example.com"}
	// en_2 {"email":"b@example.com"}
}

func ExampleClient_Changes() {
	api := newAPI()
	defer api.Close()
	c, err := client.New(api.URL)
	if err != nil {
		panic(err)
	}
	store := map[string]string{} // in a real program, the table that the changes go to
	for page, err := range c.Changes(context.Background(), "pr_1", client.ChangeQuery{Cursor: store["cursor"]}) {
		if err != nil {
			panic(err)
		}
		for _, change := range page.Changes {
			switch change.Type {
			case client.EntryChanged:
				fmt.Println("put", change.Entry.EntryID)
			case client.EventAdded:
				fmt.Println("put", change.Event.EventKey)
			case client.EntryRemoved:
				fmt.Println("delete", change.Removal.EntryID)
			}
		}
		store["cursor"] = page.NextCursor
	}
	// Output:
	// put en_1
	// delete en_1
}

func ExampleCode() {
	api := newAPI()
	defer api.Close()
	c, err := client.New(api.URL)
	if err != nil {
		panic(err)
	}
	_, err = c.Entry(context.Background(), "pr_1", "en_9")
	fmt.Println(client.Code(err) == client.CodeEntryNotFound)
	if e, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(e.Status)
	}
	// Output:
	// true
	// 404
}

func ExampleIngester_SendEntries() {
	api := newAPI()
	defer api.Close()
	i, err := client.NewIngester(api.URL, client.WithAPIKey("ingest-key"))
	if err != nil {
		panic(err)
	}
	receipt, err := i.SendEntries(context.Background(), []client.Entry{{ProjectID: "pr_1", EntryID: "en_3", Data: "{}"}})
	fmt.Println(receipt.Stored, errors.Join(err, receipt.Err()))
	// Output: 1 <nil>
}

func ExampleStoreRequestID() {
	api := newAPI()
	defer api.Close()
	c, err := client.New(api.URL)
	if err != nil {
		panic(err)
	}
	var id string
	entry, err := c.Entry(client.StoreRequestID(context.Background(), &id), "pr_1", "en_1")
	fmt.Println(entry.EntryID, err, id) // the fake sends no id
	// Output: en_1 <nil>
}
