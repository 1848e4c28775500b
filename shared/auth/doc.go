// Package auth verifies API keys before a request is served, and the shared keys of trusted services. Package pgkeys
// stores the keys in Postgres. Package rediskeys has the copies that processes share. Package authn combines the parts
// for a service.
//
// # What it promises
//
//   - A key is looked up together with the project of the request. An unknown key and a key of another project get the
//     same answer.
//   - Only the SHA-256 of a key is stored or sent on. No log, metric or span contains a key.
//   - A revoked key stops working everywhere within a second, with Redis and without it. The revocation takes up to
//     AUTH_CACHE_TTL if the revoking process could not reach Redis, or a failover of Redis lost the revocation. The
//     time at which a request began decides.
//   - A fault of a store is never answered as a wrong key, and never grants anything. If no cached copy is left, the
//     answer is "unavailable".
//   - Random keys do not reach the stores without bound. Look-ups in flight are limited, and so are the refused keys of
//     each client network. Over a limit the answer is "rate limited". Requests with cached keys are not affected.
//
// # The one way in
//
// Every credential takes the same way: an API key, an imported key, and a token by its subject or by its groups. The way is
// the same in one project and in all projects (GET /me/projects).
//
//	identify   the form of a key, or the signature of a token with a held signing key; no store is asked
//	decide     a valid copy of this process answers
//	refused    unless the holder was accepted before: 429 if the network has sent too many refused credentials
//	lookUp     one look-up in flight for each holder, in a bounded number of slots, with a time limit
//	answer     the principals, or a refusal, which counts for the network
//
// A kind of credential adds its form to identify. The other steps see hashes alone, and hold for every kind. A token has
// the hashes of its subject and of its groups. The cache names all of them by one hash, and lookUp asks for all at once. A
// token with an unknown signing key asks refused before it waits for the issuer.
//
// # How a copy learns of a change
//
// Nothing notifies a process of a change: the process asks again when its copy is too old. A look-up asks the cache of
// the process, then Redis, then Postgres. A process uses its copy for a second, counted from before the look-up. The
// process renews a copy in use in the background before that second ends, so a slow look-up delays no request whose
// copy is valid. The copy in Redis lives AUTH_CACHE_TTL less that second, counted from before Postgres was read. A
// change of a key replaces the copy in Redis by a marker. A new grant does the same, because the identity may have had one
// before. Without Redis each process reads each key in use from Postgres every 0.7 s.
//
// This package creates the text of keys and checks it. Package pgkeys stores, rotates and revokes keys.
package auth
