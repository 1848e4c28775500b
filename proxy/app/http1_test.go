package app_test

import "testing"

// overHTTP1 is in the names of the tests whose targets only speak HTTP/1.1.
const overHTTP1 = "TestTargetsOfHTTP1"

// TestTargetsOfHTTP1 repeats the tests of what a connection carries with targets that only speak HTTP/1.1.
func TestTargetsOfHTTP1(t *testing.T) {
	for _, tt := range []struct {
		name string
		test func(*testing.T)
	}{
		{"forwarding", TestForwards},
		{"headers of requests", TestNothingIsAddedAndWhatIsOursIsRemoved},
		{"bodies at their limit", TestBodyAtItsLimit},
		{"limits", TestLimits},
		{"smuggling", TestSmuggling},
		{"malformed chunks", TestMalformedChunks},
		{"events", TestPiecesArriveOneByOne},
		{"trailers", TestTrailersBothWays},
		{"continue", TestContinueComesFromTheTarget},
		{"early answer", TestEarlyAnswer},
		{"conversation", TestConversation},
		{"caller gone", TestCallerGoneCancelsTheTarget},
		{"exact bytes", TestBytesAreExact},
	} {
		t.Run(tt.name, tt.test)
	}
}
