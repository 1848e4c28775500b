// Package pglocal runs a private Postgres server with the machine's own binaries, for local runs and for tests. The
// server belongs to this process and to one folder. On Linux, the server ends with its parent process, even if that
// process is killed. The next start uses the data in the folder.
//
// Clients reach the server without a password through a Unix socket in a folder that only the server's user may enter.
// TCP is optional: the server listens only on loopback, with a password (SCRAM) that is stored in the folder. So other
// users of the machine cannot read the data.
//
// The package is not for production: it does no tuning, backup or upgrade.
package pglocal
