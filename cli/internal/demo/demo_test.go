package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// The documentation's examples use these ids, so the generated records must not change.
const (
	goldenEntries = "98292586eff796f6360914d0a2c4b6b41764a00059208aa57830ded1b0b7f223"
	goldenEvents  = "9a9e04a1477905793eb814ea4dae0089467825ee64a9c4ee5d42c1820e599b62"

	goldenEmbeddables = "d282336ffc97e4f75b7b9973645dc90a613981fe293f580ccf82002e310a90c4"
	goldenVersions    = "a36147ff6d76b990191b93c591e495f993438fe3b59d09b4996891647cc76cbf"
	goldenExperiments = "7edc5b7362cf77fdb1abfad5bdbdedd81cb16bff1e6131f0650242052e78b601"
	goldenProjects    = "a7355c06896be69c60804bc585db93f372d24f4647ea093b244fda7c8a44e9b5"
)

func TestData(t *testing.T) {
	for _, tt := range []struct{ resource, want string }{
		{"entries", goldenEntries},
		{"events", goldenEvents},
		{"embeddables", goldenEmbeddables},
		{"embeddable-versions", goldenVersions},
		{"experiments", goldenExperiments},
		{"projects", goldenProjects},
	} {
		t.Run(tt.resource+" are the same bytes each time", func(t *testing.T) {
			sum := sha256.New()
			if err := Write(sum, tt.resource); err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(sum.Sum(nil)); got != tt.want {
				t.Errorf("SHA-256 %s, want %s", got, tt.want)
			}
		})
	}
}
