// Package auth owns who may read a project: API keys, their verification in front of a request, and
// the shared keys of trusted services. Keys of record are in package pgkeys, the cache of them that
// processes share in rediskeys; keyring puts the parts together for a service.
//
// # What it promises
//
//   - A key is looked up together with the project of the request. A key that does not exist and one
//     of another project are the same thing.
//   - Only the SHA-256 of a key is ever stored or sent on. A key stands in no log, metric or span.
//   - A key that is revoked stops working everywhere within a second while Redis is up, and within
//     the cache's TTL always: the time counts from the moment that Postgres was read, however many
//     layers the answer came through.
//   - A fault of a store is never answered as a wrong key, and never grants anything. While no store
//     answers, what was read before serves until its TTL has passed; after that the answer is
//     "unavailable".
//
// It refuses to know what is read, and to mint or revoke: that is pgkeys.Admin's.
package auth
