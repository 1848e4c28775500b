// Package applyconfiguration builds, from a kind's name, the configuration that server-side apply takes of it.
// All but this file is generated.
package applyconfiguration
