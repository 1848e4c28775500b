// Package apikey keeps a working key in the Secret of each APIKey: it mints, rotates and revokes keys. For an APIKey
// with an identity, it keeps a grant of the identity instead.
//
// # The record
//
// The key database records the keys that exist. The Secret holds the key that its clients read. A reconcile
// reads the object, its keys and its Secret. The pure function [plan] returns the next step. The reconcile does
// the step, updates what it has read with the result, and repeats until no step is left. No later run depends on
// memory or on the object's status: the status is for people and is written last.
//
// The database holds the SHA-256 of each key. A reconcile hashes the Secret's values to find their keys. The
// current key is the key in the Secret that the database accepts. For each key the database also holds:
//
//   - its owner: the object's UID in this cluster
//   - its number among the owner's keys
//   - the value of lectern.dev/rotate when the key was minted
//   - the time of its delivery, which is when the operator saw the key in the Secret
//
// # The order, and the state after a crash
//
// The text of a key exists only in the process that minted it, so a crash before the write to the Secret loses
// it. The operator still mints first and writes the Secret second. In the other order, a crash would leave a
// Secret with a key that does not work. Clients would fail until an operator is back.
//
// So a crash can leave a working key that nobody has. The next run finds the key undelivered and not in the Secret,
// and revokes the key before it mints another key. Each object has at most one such key. A crash can come after each
// step:
//
//   - After a key is minted, nobody has it: the next run revokes it and mints again.
//   - After the Secret is written, the delivery is not recorded: the next run records it and mints nothing.
//   - After the delivery is recorded, the previous key has no expiry: the next run sets it.
//   - After the expiry of the previous key is set, the status is old: the next run writes it.
//   - After some keys of a deleted object are revoked, the next sweep revokes the rest.
//
// A failed call may have succeeded and lost its answer. The next run handles a failed call like a crash after the
// call: it reads everything again. So a failed step undoes nothing. In particular, a run does not revoke a key whose
// Secret it could not write, because the write may have arrived.
//
// # Two operators
//
// An operator that lost its lease without noticing can work on an object at the same time as its successor.
//
//   - The database assigns each number of an owner's keys once. Of two operators that rotate, one mints.
//   - For [Options.Settle], no operator takes an undelivered key for lost, or mints another key. The operator that
//     minted the key must write the Secret within half of that time.
//   - A new Secret is created, never merged into an existing one. An existing Secret is applied with the
//     resourceVersion that was read. So a late operator cannot overwrite a newer Secret.
//   - The cache can be out of date. Before a run changes anything, it reads the object from the API server and
//     plans again.
//
// # Ownership of the Secret
//
// A Secret belongs to an object if its controller owner reference has the object's UID. The operator leaves every
// other Secret unchanged, whatever its labels. The condition then reports the conflict, and no key is minted. Values
// that other programs add to the operator's Secret stay.
//
// # Ownership of the project
//
// A Project must declare the project. The object must be in the Project's namespace or in a namespace that the
// Project allows. If the Project does not allow the object's namespace, the object has no keys: existing keys are
// revoked at once. If no Project declares the project, no key is minted, but existing keys continue to work, so
// that an administrator can replace a Project. With [Options.AllowUndeclared], every namespace may use a project
// that no Project declares.
//
// # Rotation
//
// The operator replaces the current key:
//
//   - on schedule
//   - when lectern.dev/rotate has a value other than the one that the current key was minted with
//   - when the Secret was deleted, or holds no working key
//   - when the database does not know the key, because the database was emptied or restored; a sweep finds such objects
//   - when someone else set an expiry on the current key (lectern keys rotate)
//   - when lectern.dev/revoke-keys names the current key
//
// The previous key works for the overlap, counted from the delivery of the new key. The overlap also applies when the
// Secret was deleted or edited, because clients still hold the old value. A leaked key that
// lectern.dev/revoke-keys names is revoked without overlap. Changes of scopes, rate and expiry apply to existing
// keys, and rotate none.
//
// # Identities
//
// An object with spec.identity has a grant in place of keys: a record of the database with the hash of the identity.
// Clients prove the identity by tokens, so no Secret is read or written. [plan] treats the grant as a key in a Secret
// that always holds the hash. The order, ownership of the project and deletion are the same. Annotations about keys have
// no effect. If another owner has an active grant for the identity in the project, the condition reports the conflict,
// and the operator retries. If CLUSTER_ISSUER changes, the new issuer's grant is made, and the old grant ends.
//
// The grant of a ServiceAccount is for the account's uid. An object waits for an account that does not exist. If
// the account is gone or has another uid, the operator revokes the grant. Then it grants the new uid. If the operator
// may not read ServiceAccounts, it keeps the grants that exist and makes no others.
//
// Version 0.1.0 made grants without a uid. The operator grants the uid, and lets the old grant work for another hour:
// services of both versions run during an upgrade. See [state.termsOf] for the end of the old grant.
//
// # Deletion
//
// No finalizer holds an object: it would wait for an operator that may be gone before. When an object is gone, the operator
// sweeps at once. If the database is away, the sweep is retried until the database is back. An object that waits for the
// finalizer of another program has no keys any more.
//
// The sweep also runs at start and every few minutes. It revokes keys whose object no longer exists in any namespace, and
// keys of objects whose namespace has not been watched for an hour. It finds keys that were revoked or used outside
// Kubernetes. A sweep that finds no object of any key, and whose process saw none, waits for an hour: somebody may have
// lost the objects.
package apikey
