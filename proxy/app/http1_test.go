package app_test

import "testing"

// overHTTP1 is in the names of the tests whose targets only speak HTTP/1.1.
const overHTTP1 = "TestTargetsOfHTTP1"

// TestTargetsOfHTTP1 repeats tests with targets that only speak HTTP/1.1.
func TestTargetsOfHTTP1(t *testing.T) {
	for _, tt := range []struct {
		name string
		test func(*testing.T)
	}{
		{"forwarding", TestForwards},
		{"headers of requests", TestNothingIsAddedAndWhatIsOursIsRemoved},
		{"templating", TestTemplating},
		{"answer headers", TestAnswerHeaders},
		{"bodies at their limit", TestBodyAtItsLimit},
		{"limits", TestLimits},
		{"redirects", TestRedirectsAreNotFollowed},
		{"other spellings", TestSameDestinationInOtherSpelling},
		{"rebinding", TestRebindingOfAnAllowedName},
		{"smuggling", TestSmuggling},
		{"malformed chunks", TestMalformedChunks},
		{"HTTP/1.0", TestHTTP10AnswerThatBreaksOff},
		{"echoed secrets", TestEchoedSecretsAreScrubbed},
		{"secrets that may come back", TestScrubbingCanBeOff},
		{"endpoints without credentials", TestEndpointsWithoutCredentialsPassAnswers},
		{"changes of the policy", TestPolicyChangesTakeEffect},
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
