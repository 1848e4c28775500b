// Package auth verifies API keys before a request is served, and the shared keys of trusted services. Package pgkeys
// stores the keys in Postgres. Package rediskeys has the copies that processes share. Package keyring combines the
// parts for a service.
//
// # What it promises
//
//   - A key is looked up together with the project of the request. An unknown key and a key of another project
//     get the same answer.
//   - Only the SHA-256 of a key is stored or sent on. No log, metric or span contains a key.
//   - A revoked key stops working everywhere within a second while Redis is up, and within AUTH_CACHE_TTL always.
//     The time counts from when Postgres was read, over all caches together.
//   - A fault of a store is never answered as a wrong key, and never grants anything. If no cached copy is left,
//     the answer is "unavailable".
//   - Random keys do not reach the stores without bound: look-ups in flight are limited, and so are the
//     refused keys of each client address. Beyond that the answer is "rate limited". Cached keys are not affected.
//
// # How a copy learns of a change
//
// A look-up asks the cache of the process, then Redis, then Postgres. A change of a key puts a marker into Redis and
// is broadcast; each process then drops its copy. A process that loses its subscription drops all its copies. It
// drops them again when it is subscribed. Even if a process misses a change, a copy expires AUTH_CACHE_TTL after
// Postgres was read.
//
// This package creates the text of keys and checks it. Package pgkeys stores, rotates and revokes keys.
package auth
