// Package apikey keeps for each APIKey a working key in its Secret: it mints, replaces and revokes.
//
// # The record
//
// The database of the keys is the record of what was made, the Secret the record of what its users read. A
// reconcile reads both, and the object; [plan], which is pure, says the one next step; the step is done and
// what it gave is put into what was read; and so on until there is none. Nothing that a later run needs is kept
// in memory or in the object's status: the status is written for people, last.
//
// The Secret's key is told from others by its SHA-256, which is what the database holds. It is the current key
// when the database accepts it. A key has in the database its owner (the object's UID in this cluster), its
// number among the owner's keys, the value of lectern.dev/rotate when it was minted, and when it was
// delivered, that is, seen in the Secret.
//
// # The order, and what a crash leaves
//
// The text of a key exists once, in the process that minted it, so what is minted and not in the Secret is lost.
// A key is minted first and then put into the Secret: the other way round a crash would leave a Secret that
// nobody can read data with, and users that fail until an operator is back. So a crash may leave a key that
// works and that nobody has; the next run, which finds it not delivered and not in the Secret, revokes it
// before it mints another. There is at most one such key for each object.
//
//	after                          a crash leaves                           the next run
//	the finalizer                  an object without keys                   mints
//	the key in the database        one key that nobody has                  revokes it, mints again
//	the Secret                     a delivered key, not noted as such       notes it; nothing is minted
//	the delivery noted             the key before it, without an end        gives it its end
//	the end of the key before      a status of before                       writes the status
//	the status                     nothing                                  does nothing
//	a revocation of the deletion   fewer keys                               revokes the rest
//	all revocations                an object held by its finalizer          lets it go
//
// A call that failed may have succeeded, and its answer been lost: that is the same as a crash after it, and
// handled the same, by reading again. So nothing is undone when a step fails. In particular a key whose
// Secret could not be written is not revoked in that run, as the write may have come through.
//
// # Two operators
//
// An operator that lost its lease and does not know it, and the one that took it, may be at work on one object.
//
//   - The database gives each number of an owner's keys once: of two that rotate, one mints.
//   - A key that is not delivered is left alone for [Options.Settle], which is longer than its minter may take to
//     write the Secret; meanwhile no other is minted.
//   - The Secret is created, never merged into one that is there, or applied with the resourceVersion that was
//     read: who is late writes nothing.
//   - The cache may be old. A run that would change something reads the object anew and plans again.
//
// # Whose Secret it is
//
// The one whose controller, by owner reference, is the object's UID. Any other is left as it is, whatever its
// labels: the condition says so, and no key is minted. What others put into the Secret beside our fields
// stays.
//
// # Whose project it is
//
// A Project has to declare the project, and the object has to be in its namespace or in one that it allows. Where the
// Project is another namespace's and does not allow this one, or not any more, the object has no keys: those that it
// had are revoked at once. Where no Project declares the project, nothing is minted; the keys that were issued work on,
// so that an administrator can replace a Project. With [Options.AllowUndeclared] a project that no Project
// declares is everybody's.
//
// # When a key is replaced
//
// By schedule; when lectern.dev/rotate has a value that the current key was not minted with; when the Secret
// is gone, or holds no key that works; when the current key was given an end by somebody else (lectern keys
// rotate). The key before it then works for the overlap, counted from when the new one was delivered: also
// when the Secret was deleted or edited, as its users still hold what they read. A key that leaked is named in
// lectern.dev/revoke-keys: it is replaced if it is the current one, and revoked without overlap. Other scopes,
// another rate and another expiry hold for the keys that are there, within a second, and replace none.
//
// # The end
//
// The finalizer holds the object until its keys are revoked. With the database out of reach it is let go after
// [Options.RevokeWithin], with an event and a metric. The sweep, at start and every few minutes, revokes the
// keys whose object is gone; it also finds keys that were revoked or used without Kubernetes hearing of it.
package apikey
